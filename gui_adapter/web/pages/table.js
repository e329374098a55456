// A table: a game between people in different browsers. The server keeps the game and checks each action. Each seat is a
// link.

import { button, h, select } from "./dom.js";
import { Game, other } from "./game.js";
import { recall, remember } from "./settings.js";
import { failed, note, say, speak } from "./view.js";
import * as words from "./words.js";

const CLOCKS = [["", "none"], ["180+2", "3 min + 2 s"], ["600+5", "10 min + 5 s"], ["1800+15", "30 min + 15 s"], ["5400+30", "90 min + 30 s"]];
const PLACES = ["a", "d", "watch"];
const SURE = "Really resign?";
const AGAIN = "Rematch";
const ASKING_MS = 5000;
const TICK_MS = 200;

/** The links of tables made in this tab, found by any of their seat words. */
const made = {
  read: () => JSON.parse(sessionStorage.getItem("hnefi-tables") ?? "[]"),
  find: (seat) => made.read().find((seats) => Object.values(seats).includes(seat)),
  add: (seats) => sessionStorage.setItem("hnefi-tables", JSON.stringify([...made.read(), seats].slice(-20))),
};

class Table {
  constructor(app) {
    this.app = app;
    this.title = "Play together";
    this.card = h("div", { className: "mode" });
    this.seat = null; // the seat word from the link
    this.table = null; // what the server calls the table
    this.shown = null; // the last frame from the server
  }

  linked() {
    return /[#&]seat=([\w-]{10,64})/.exec(location.hash)?.[1] ?? null;
  }

  async enter() {
    this.stopListening();
    this.shown = null;
    this.seat = this.linked();
    if (this.seat) await this.sit();
    else this.offer();
  }

  leave() {
    this.left = true;
    clearInterval(this.ticking);
    if (this.table) this.ask("leave").catch(() => {});
    this.stopListening();
  }

  stopListening() {
    this.app.wire.sessions.delete(this.table);
    this.table = null;
  }

  /** The connection is back. */
  again() {
    if (this.seat) this.sit().catch((error) => this.gone(error.message));
  }

  key(event) {
    if (event.key.toLowerCase() === "f") this.app.board.flip();
  }

  ask(what, more = {}) {
    return this.app.wire.ask({ t: "table", do: what, seat: this.seat, ...more });
  }

  // Making one

  offer() {
    const { offer, game } = this.app;
    const names = offer.variants.map(({ name, files, ranks }) => [name, `${name} (${files} × ${ranks})`]);
    this.rules = select("Rules", names, () => this.preview());
    this.rules.box.value = game.variant.name;
    this.clock = select("Clock", CLOCKS, () => {});
    this.side = select("You play", [["a", "the side that attacks"], ["d", "the side that defends"], ["watch", "neither side: watch"]], () => {});
    this.nick = h("input", { type: "text", maxLength: 24, value: recall("name") ?? "", autocomplete: "nickname" });
    this.card.replaceChildren(
      h("p", { className: "small" }, "Play with somebody in another browser. You get one link for your opponent and one for spectators."),
      this.rules.row,
      this.side.row,
      this.clock.row,
      h("label", { className: "wide" }, "Your name ", this.nick),
      h("p", { className: "end" }, button("Create a table", () => this.make(), { className: "main" })),
    );
    say("");
    this.preview();
  }

  preview() {
    const variant = this.app.offer.variants.find(({ name }) => name === this.rules.box.value);
    this.app.dress(variant);
    this.app.stand(variant.startpos, []);
  }

  async make() {
    remember("name", this.nick.value.trim());
    const clock = /^(\d+)\+(\d+)$/.exec(this.clock.box.value);
    try {
      const wanted = { variant: this.rules.box.value, clock: clock && [Number(clock[1]), Number(clock[2])] };
      const { seats } = await this.app.wire.ask({ t: "table", do: "make", ...wanted });
      made.add(seats);
      location.hash = `table&seat=${seats[this.side.box.value]}`;
    } catch (error) {
      failed(error);
    }
  }

  // Sitting at a table

  async sit() {
    const { seat } = this;
    say("Looking for the table …");
    let answer;
    try {
      answer = await this.ask("sit", { name: recall("name") ?? "" });
    } catch (error) {
      this.gone(error.message);
      return;
    }
    if (seat !== this.seat || this.left) return;
    this.table = answer.table;
    this.place = answer.seat;
    // No `heard`: there is nothing to resume; the page sits down again.
    this.app.wire.sessions.set(this.table, { take: (frame) => this.take(frame), failed: (frame) => this.gone(frame.text) });
    this.people = h("ul", { className: "people" });
    this.moves = h("p", { className: "small" });
    this.buttons = {
      draw: button("Offer a draw", () => this.act("draw")),
      resign: button("Resign", () => this.resign()),
      swap: button("Swap sides", () => this.play("swap"), { hidden: true }),
      flip: button("Flip", () => this.app.board.flip(), { title: "Turn the board (F)" }),
      again: button(AGAIN, () => this.act("rematch"), { hidden: true, title: "A new game with the sides swapped" }),
      study: button("Analyse the game", () => this.study(), { hidden: true }),
      another: button("New table", () => {
        location.hash = "table";
      }),
    };
    const named = h("input", { type: "text", maxLength: 24, value: recall("name") ?? "", autocomplete: "nickname", onchange: () => this.rename(named.value.trim()), onkeydown: (event) => event.key === "Enter" && named.blur() });
    const row = this.place === "watch" ? null : h("label", { className: "wide" }, "Your name ", named);
    this.card.replaceChildren(...[this.people, h("div", { className: "row" }, ...Object.values(this.buttons)), this.moves, row, this.links()].filter(Boolean));
    clearInterval(this.ticking);
    this.ticking = setInterval(() => this.tick(), TICK_MS);
    say("The engine is starting …");
  }

  /** Resign on a second press within a few seconds, so that a slip of the thumb cannot. */
  resign() {
    const { resign } = this.buttons;
    if (resign.textContent === SURE) this.act("resign");
    const asked = resign.textContent !== SURE;
    resign.textContent = asked ? SURE : "Resign";
    clearTimeout(this.asking);
    if (asked) this.asking = setTimeout(() => (resign.textContent = "Resign"), ASKING_MS);
  }

  rename(name) {
    remember("name", name);
    this.ask("sit", { name }).catch(failed);
  }

  gone(text) {
    clearInterval(this.ticking);
    this.stopListening();
    this.app.board.setLegal([]);
    say(words.capital(text));
    this.card.replaceChildren(button("New table", () => {
      location.hash = "table";
    }));
  }

  /** The links to share; only whoever made the table sees the seats. The links change sides after each game. */
  links() {
    const seats = made.find(this.seat) ?? {};
    const swapped = this.shown?.game % 2 === 0;
    const rows = PLACES.filter((place) => seats[place] && seats[place] !== this.seat).map((place) => {
      const link = h("input", { type: "text", readOnly: true, value: `${location.href.split("#")[0]}#table&seat=${seats[place]}` });
      const what = { a: "Attackers’ seat", d: "Defenders’ seat", watch: "Spectators" }[swapped && place !== "watch" ? other(place) : place];
      link.setAttribute("aria-label", `Link: ${what}`);
      const copy = button("Copy", async () => {
        link.select();
        try {
          await navigator.clipboard.writeText(link.value);
          note("Link copied.");
        } catch {
          note("Copy the selected link.");
        }
      });
      return h("div", { className: "link" }, h("span", {}, what), link, copy);
    });
    return h("div", { className: "links" }, ...rows);
  }

  /** A new game at this table: this seat now plays the other side. */
  turn() {
    this.place = this.shown.seat;
    this.app.board.flipped = false;
    this.card.querySelector(".links").replaceWith(this.links());
    note(this.place === "watch" ? "A new game begins." : `A new game begins: you now play the ${this.variant.sides["ad".indexOf(this.place)]}.`);
  }

  /** Load the finished game into the page. */
  study() {
    const { start, moves, over } = this.shown;
    const game = new Game(this.variant, ["human", "human"], { start, moves });
    game.result = over;
    this.app.take(game);
    document.getElementById("review").click();
  }

  async act(what) {
    try {
      await this.ask(what);
      // What the other one has offered before is agreed to by this.
      const agreed = this.shown?.offers.some((side) => side !== this.place);
      note(agreed ? "" : ({ draw: "You offer a draw.", rematch: "You ask for a rematch." }[what] ?? ""));
    } catch (error) {
      failed(error);
    }
  }

  async play(m) {
    note("");
    this.app.board.setLegal([]);
    try {
      await this.ask("move", { move: m });
    } catch (error) {
      note(`Illegal move: ${error.message}.`);
      if (this.shown) this.app.board.setLegal(this.shown.legal);
    }
  }

  refused(m) {
    const { shown } = this;
    if (!shown) return;
    if (shown.over || shown.outcome) note("The game is over.");
    else if (shown.side !== this.place) note(this.place === "watch" ? "You are a spectator." : "It is not your turn.");
    else if (m) this.play(m);
  }

  take(frame) {
    if (frame.closed) {
      this.gone("this table is closed");
      return;
    }
    const before = this.shown;
    this.shown = frame;
    this.since = performance.now();
    const { board } = this.app;
    if (before?.variant !== frame.variant || JSON.stringify(before.special) !== JSON.stringify(frame.special)) {
      this.app.dress(frame.variant, { onMove: (m) => this.play(m), onRefused: (m) => this.refused(m) }, frame.special);
    }
    this.variant = this.app.offer.variants.find(({ name }) => name === frame.variant);
    if (before && before.game !== frame.game) this.turn();
    const m = frame.moves.at(-1) ?? null;
    const step = before && frame.moves.length === before.moves.length + 1 ? { m, x: before.fen ? lost(before.fen, frame.fen, m) : [] } : null;
    this.app.stand(frame.fen, frame.legal, step);
    if (m) board.mark({ last: m.match(/[a-z]\d+/g) ?? [], taken: step?.x ?? [], arrows: [] });
    if (step && before.side !== this.place) speak(words.spoken(step));
    board.element.setAttribute("aria-label", `Table: ${frame.variant}`);
    this.render(before);
  }

  render(before) {
    const { shown, variant, place } = this;
    const seated = place !== "watch";
    const over = shown.outcome ?? shown.over;
    const called = (side) => variant.sides["ad".indexOf(side)];
    document.getElementById("title").textContent = shown.variant;
    const wasOver = before && (before.outcome ?? before.over);
    if (over) {
      say(words.ending(over, variant.sides));
      if (!wasOver) speak(words.ending(over, variant.sides));
    } else say(shown.side === place ? `Your move: ${called(place)}.` : `${words.capital(called(shown.side))} to move.`);
    const rows = ["a", "d"].map((side) => {
      const who = side === place ? (shown.names[side] ? `${shown.names[side]} (you)` : "you") : (shown.names[side] ?? (shown.here[side] ? "somebody" : "nobody yet"));
      const away = shown.here[side] || !shown.names[side] ? "" : ", away";
      const row = h("li", { className: shown.side === side && !over ? "turn" : "" }, `${words.capital(called(side))}: ${who}${away} `, h("span", { className: "clock", role: "timer" }));
      row.dataset.side = side;
      return row;
    });
    const many = shown.watching;
    this.people.replaceChildren(...rows, ...(many ? [h("li", {}, `${many} ${many === 1 ? "spectator" : "spectators"}`)] : []));
    this.moves.textContent = shown.moves.map((m, at) => (at % 2 ? m : `${at / 2 + 1}. ${m}`)).join(" ");
    const theirs = shown.offers.some((side) => side !== place);
    this.buttons.draw.hidden = this.buttons.resign.hidden = !seated || Boolean(over);
    this.buttons.again.hidden = !seated || !over;
    this.buttons.draw.textContent = theirs ? "Accept the draw" : "Offer a draw";
    this.buttons.again.textContent = theirs ? "Accept the rematch" : AGAIN;
    this.buttons.draw.disabled = this.buttons.again.disabled = shown.offers.includes(place);
    this.buttons.swap.hidden = !shown.legal.some((move) => move.m === "swap");
    this.buttons.another.hidden = this.buttons.study.hidden = !over;
    if (theirs && seated && !before?.offers.length) {
      const what = over ? "Your opponent asks for a rematch" : "Your opponent offers a draw";
      note(over ? `${what}.` : `${what}. Make a move to decline it.`);
      speak(`${what}.`);
    }
    this.tick();
  }

  tick() {
    const clock = this.shown?.clock;
    if (!clock) return;
    for (const row of this.people.querySelectorAll("[data-side]")) {
      const { side } = row.dataset;
      const gone = clock.running === side ? performance.now() - this.since : 0;
      row.querySelector(".clock").textContent = words.clockText(clock[side] - gone);
    }
  }
}

/** The squares emptied from one FEN to the next, except the origin of the move. */
function lost(before, after, m) {
  const [from] = m.match(/[a-z]\d+/g) ?? [];
  const [was, is] = [words.rowsOf(before), words.rowsOf(after)];
  const found = [];
  for (const [at, row] of was.entries()) {
    for (let file = 0; file < row.length; file += 1) {
      const square = `${"abcdefghijklmnopqrs"[file]}${was.length - at}`;
      if (row[file] !== "." && is[at][file] === "." && square !== from) found.push(square);
    }
  }
  return found;
}

export const mode = (app) => new Table(app);
