// The workshop: design your own rules. Every rule switch is a control, and the starting position is drawn on the board.
// After each change the server says what the rules mean, or why they are not valid.

import { svg } from "./board.js";
import { $, button, h, select } from "./dom.js";
import { palette, placed } from "./editor.js";
import { adopt } from "./records.js";
import { recall, remember } from "./settings.js";
import { failed, note, passOn, say } from "./view.js";
import * as words from "./words.js";

const LATER_MS = 200;
const SIZES = Array.from({ length: 15 }, (_, at) => at + 5);
const NODES = [["100", "quick: 100 nodes per move"], ["400", "400 nodes per move"], ["1600", "careful: 1600 nodes per move"]];
const STUDY = 200; // games
const Z = 1.959963984540054; // 95 %

/** The 95 % Wilson interval of a score: `points` out of `games`. */
export function wilson(points, games) {
  const [share, z2] = [points / games, Z * Z];
  const centre = share + z2 / (2 * games);
  const width = Z * Math.sqrt((share * (1 - share)) / games + z2 / (4 * games * games));
  return [centre - width, centre + width].map((edge) => Math.max(0, Math.min(1, edge / (1 + z2 / games))));
}

class Workshop {
  constructor(app) {
    this.app = app;
    this.title = "Rule workshop";
    this.card = h("div", { className: "mode workshop" });
    this.changes = {}; // switches that differ from their defaults
    this.controls = {};
    this.made = null; // the last valid rules
  }

  async enter() {
    const { wire, offer, game } = this.app;
    const { groups } = await wire.ask({ t: "workshop" });
    if (!this.app.shows(this)) return;
    this.known = offer.variants.filter((variant) => variant.game === "tafl" && !variant.words);
    const named = this.known.map(({ name, files }) => [name, `${name}, ${files} × ${files}`]);
    const later = () => this.later();
    this.base = select("Start from", [["", "…"], ...named], () => this.base.box.value && this.load({ variant: this.base.box.value }));
    this.nameBox = h("input", { value: "my-tafl", maxLength: 64, spellcheck: false, oninput: later });
    this.size = select("Size", SIZES.map((size) => [size, `${size} × ${size}`]), () => this.resize(Number(this.size.box.value)));
    this.men = h("div", { className: "men", role: "group", "aria-label": "Men" });
    this.beside = select("Compare with", [["", "nothing"], ...named], () => this.check());
    this.diff = h("ul", { className: "small" });
    this.text = h("textarea", { rows: 12, spellcheck: false, "aria-label": "The rules as TOML" });
    this.nodes = select("Search effort", NODES, () => {});
    this.nodes.box.value = "400";
    this.fair = button("How fair is it?", () => this.study());
    this.verdict = h("p", { role: "status" });
    this.meter = h("div", { className: "fair", hidden: true });
    this.buttons = [
      button("Play", () => this.play(), { className: "main" }),
      button("Lesson", () => this.lesson()),
      button("Link", () => this.link()),
      button("Save", () => this.save()),
    ];
    this.reasons = { name: h("p", { className: "why", role: "alert" }), start: h("p", { className: "why", role: "alert" }) };
    this.card.replaceChildren(
      h("div", { className: "row" }, ...this.buttons),
      this.base.row,
      h("label", { className: "wide" }, "Name", this.nameBox),
      this.reasons.name,
      h("details", { open: true }, h("summary", {}, "Starting position: draw it on the board"), this.size.row, this.men, this.reasons.start),
      ...groups.map((group) => this.group(group)),
      h("details", { ontoggle: () => this.beside.box.value || this.check() }, h("summary", {}, "Compare with a known game"), this.beside.row, this.diff),
      h("details", {}, h("summary", {}, "How fair is it?"), this.nodes.row, this.fair, this.meter, this.verdict),
      h("details", {}, h("summary", {}, "As text"), this.text, button("Use this text", () => this.load({ toml: this.text.value }))),
    );
    const linked = new URLSearchParams(location.hash.slice(1)).get("rules") ?? recall("workshop");
    const first = game.variant.game === "tafl" ? game.variant : this.known.find((variant) => variant.name === "brandubh");
    if (!(linked && (await this.load({ words: linked })))) await this.load(first.words ? { words: first.words } : { variant: first.name });
  }

  leave() {
    this.app.board.onSquare = null;
    this.stop();
  }

  // Controls

  group({ title, switches }) {
    const rows = switches.map((known) => this.control(known));
    return h("details", {}, h("summary", {}, title), ...rows);
  }

  control({ name, kind, words: values, meaning, expected }) {
    const label = words.capital(name.replaceAll("_", " "));
    const change = (value) => this.set(name, value);
    const props = { "aria-label": label, title: expected };
    let box;
    if (["choice", "yes_no", "sides"].includes(kind)) box = select(label, values.map((value) => [value, value]), () => change(box.value), props).box;
    else box = h("input", { ...props, spellcheck: false, placeholder: expected, onchange: () => change(box.value) });
    if (kind === "pieces") {
      const id = `words-${name}`;
      box.setAttribute("list", id);
      box.after(h("datalist", { id }, ...values.map((value) => h("option", { value }))));
    }
    const said = h("p", { className: "small", id: `said-${name}` });
    const why = h("p", { className: "why", role: "alert", id: `why-${name}` });
    box.setAttribute("aria-describedby", `said-${name} why-${name}`);
    this.controls[name] = { box, said, why };
    const mark = kind === "squares" ? button("Mark", () => this.pick(name), { "aria-pressed": "false", title: `${label}: choose the squares on the board` }) : null;
    if (mark) this.controls[name].mark = mark;
    const head = h("div", { className: "row" }, h("span", { title: meaning }, label), box, mark);
    return h("div", { className: "switch" }, head, said, why);
  }

  set(name, value) {
    this.changes[name] = value;
    this.latest = name;
    this.check();
  }

  /** Choose the squares of a switch on the board, until a man is chosen. */
  pick(name) {
    this.picking = this.picking === name ? null : name;
    for (const [other, { mark }] of Object.entries(this.controls)) if (mark) mark.setAttribute("aria-pressed", String(other === this.picking));
    this.app.board.mark({ last: this.picking ? this.squares(name) : [] });
    say(this.picking ? `Choose the squares: ${name.replaceAll("_", " ")}.` : "");
  }

  squares(name) {
    const { value } = this.controls[name].box;
    return value === "none" ? [] : value.split(",").filter(Boolean);
  }

  square(square) {
    if (this.picking) {
      const squares = new Set(this.squares(this.picking));
      if (!squares.delete(square)) squares.add(square);
      this.controls[this.picking].box.value = [...squares].join(",") || "none";
      this.app.board.mark({ last: [...squares] });
      this.set(this.picking, this.controls[this.picking].box.value);
      return;
    }
    this.rows = placed(this.rows, square, this.letter);
    this.app.board.setPosition(this.rows);
    this.later();
  }

  resize(size) {
    const before = this.rows.length;
    const shift = Math.floor((size - before) / 2);
    this.rows = Array.from({ length: size }, (_, at) => Array.from({ length: size }, (__, file) => this.rows[at - shift]?.[file - shift] ?? ".").join(""));
    this.dress();
    this.latest = null;
    this.check();
  }

  dress(special = {}) {
    const size = this.rows.length;
    const variant = { ...this.known[0], ...this.made?.variant, files: size, ranks: size };
    this.app.dress(variant, { onMove() {}, onRefused() {} }, special);
    const { board } = this.app;
    board.element.setAttribute("aria-label", "Starting position: draw it");
    board.onSquare = (square) => this.square(square);
    board.setPosition(this.rows);
    this.men.replaceChildren(
      ...palette(board.pieces, (letter) => {
        if (this.picking) this.pick(this.picking);
        this.letter = letter;
      }),
    );
    this.men.querySelector("[data-letter=t]").click();
  }

  // What the server says

  later() {
    this.latest = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), LATER_MS);
  }

  /** Load rules from elsewhere; returns whether they are valid. */
  async load(source) {
    const answer = await this.ask(source);
    if (!answer?.variant) {
      if (answer) note(`${answer.control ? `${answer.control}: ` : ""}${answer.reason}`);
      return false;
    }
    note("");
    const shipped = !source.words && !source.toml;
    this.nameBox.value = shipped ? `my-${answer.variant.name}`.slice(0, 64) : answer.variant.name;
    this.changes = Object.fromEntries(answer.changes.map((name) => [name, answer.values[name]]));
    this.rows = words.rowsOf(answer.variant.startpos);
    if (shipped) this.beside.box.value = answer.variant.name;
    this.size.box.value = this.rows.length;
    this.made = answer;
    this.dress(answer.special);
    await this.check();
    return true;
  }

  /** What the server says about rules; null if it failed, or if the page was left meanwhile. */
  async ask(what) {
    this.stop();
    try {
      const answer = await this.app.wire.ask({ t: "rules", beside: this.beside.box.value, ...what });
      return this.app.shows(this) ? answer : null;
    } catch (error) {
      if (this.app.shows(this)) failed(error);
      return null;
    }
  }

  async check() {
    clearTimeout(this.timer);
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const start = words.fenOf(this.rows, "a").split(" ")[0];
    const answer = await this.ask({ name: this.nameBox.value.trim(), start, switches: this.changes });
    if (!answer || turn !== this.turn) return;
    for (const { why } of Object.values(this.controls)) why.textContent = "";
    this.reasons.name.textContent = this.reasons.start.textContent = "";
    const good = Boolean(answer.variant);
    for (const one of [...this.buttons, this.fair]) one.disabled = !good;
    if (good) this.show(answer);
    else {
      // Two controls may contradict each other: show the error at the one that is wrong and at the one changed last.
      const { control, reason } = answer;
      for (const name of new Set([control, this.latest ?? control])) {
        const place = this.reasons[name] ?? this.controls[name]?.why ?? this.reasons.name;
        place.textContent = name === control ? words.capital(reason) : `${words.capital(control.replaceAll("_", " "))}: ${reason}`;
        place.closest("details")?.setAttribute("open", "");
      }
      say("These rules are not valid.");
    }
  }

  show(answer) {
    this.made = answer;
    for (const [name, { box, said }] of Object.entries(this.controls)) {
      if (document.activeElement !== box || box.tagName === "SELECT") box.value = answer.values[name];
      said.textContent = answer.said[name];
      box.closest(".switch").classList.toggle("changed", answer.changes.includes(name));
    }
    this.text.value = answer.toml;
    const { board } = this.app;
    if (JSON.stringify(board.special) !== JSON.stringify(answer.special)) {
      board.special = answer.special;
      board.build();
    }
    if (this.picking) board.mark({ last: this.squares(this.picking) });
    const rows = answer.diff.map(([subject, here, there]) => h("li", {}, h("b", {}, words.capital(subject.replaceAll("_", " "))), `: ${there} `, h("s", {}, here)));
    this.diff.replaceChildren(...rows);
    if (this.beside.box.value && !rows.length) this.diff.append(h("li", {}, "The same game."));
    remember("workshop", answer.variant.words);
    history.replaceState(null, "", "#workshop");
    const [attackers, defenders] = answer.variant.men;
    say(`${attackers} attackers against ${defenders} and the king.${answer.same.length ? ` These are the rules of ${answer.same[0]}.` : ""}`);
  }

  // Using the rules

  play() {
    const { variant } = this.made;
    adopt(this.app.offer, variant);
    this.app.dialog.open(variant, this.app.game.players);
  }

  lesson() {
    adopt(this.app.offer, this.made.variant);
    location.hash = `#learn&v=${this.made.variant.name}`;
  }

  async link() {
    history.replaceState(null, "", `#workshop&${new URLSearchParams({ rules: this.made.variant.words })}`);
    await passOn("these rules");
  }

  save() {
    words.download(`${this.made.variant.name}.toml`, this.made.toml);
  }

  // A study

  study() {
    if (this.end) {
      this.stop();
      return;
    }
    this.fair.textContent = "Stop";
    this.verdict.textContent = "The engine plays itself …";
    const frame = { t: "fair", ...words.rulesOf(this.made.variant), nodes: Number(this.nodes.box.value), games: STUDY };
    this.end = this.app.wire.stream(frame, (found, reason) => {
      if (!found) {
        this.verdict.textContent = words.capital(reason);
        this.stop();
        return;
      }
      this.judge(found);
      if (found.done) this.stop();
    });
  }

  stop() {
    if (!this.end) return;
    this.end();
    this.end = null;
    this.app.wire.put({ t: "fair", games: 0 });
    this.fair.textContent = "How fair is it?";
  }

  judge({ a, d, draw, plies, of }) {
    const games = a + d + draw;
    if (!games) return;
    const [low, high] = wilson(a + draw / 2, games);
    const percent = (share) => `${Math.round(share * 100)} %`;
    const side = low > 0.5 ? "the attackers" : high < 0.5 ? "the defenders" : "";
    const sure = side ? `As this engine plays, the rules favour ${side}.` : "Neither side is shown to be favoured.";
    this.verdict.textContent =
      `The attackers score ${percent((a + draw / 2) / games)} (95 % interval: ${percent(low)} to ${percent(high)}) in ${games} of ${of} games: ` +
      `${a} won, ${d} lost, ${draw} drawn, ${Math.round(plies / games)} moves per game. ${sure}`;
    const picture = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(svg("rect", { x: low * 100, y: 2, width: Math.max(0.5, (high - low) * 100), height: 6 }), svg("path", { d: "M50 0v10" }));
    this.meter.replaceChildren(picture);
    this.meter.hidden = false;
  }
}

export const mode = (app) => new Workshop(app);
