// Watching: arena runs in progress, finished games, tables and charts, and matches started from this page.

import { svg } from "./board.js";
import { button, h, select } from "./dom.js";
import { Game } from "./game.js";
import { failed, note, say } from "./view.js";
import * as words from "./words.js";

const MINIS = 16; // small boards shown beside the large one
const FILES = "abcdefghijklmnopqrs";
const PAIRS = [1, 5, 10, 25, 50].map((count) => [String(count), `${count} (${2 * count} games)`]);
const NODES = [["500", "500, fast"], ["5000", "5,000"], ["50000", "50,000, slow"]];

class Watch {
  constructor(app) {
    this.app = app;
    this.title = "Watch";
    this.card = h("div", { className: "mode" });
    this.topic = null; // the name under which the server reports the run
    this.games = new Map(); // games in progress or just finished
    this.chosen = null; // the game on the board
    this.words = {}; // the secrets of matches started here, by run
  }

  linked() {
    return new URLSearchParams(location.hash.slice(1)).get("run");
  }

  async enter() {
    this.stop();
    this.run = this.linked();
    if (this.run) await this.watch();
    else await this.list();
  }

  leave() {
    this.left = true;
    this.stop();
  }

  stop() {
    if (!this.topic) return;
    this.app.wire.sessions.delete(this.topic);
    this.ask("leave", { run: this.run }).catch(() => {});
    this.topic = null;
  }

  /** The connection is back. */
  again() {
    this.topic = null;
    this.enter().catch(failed);
  }

  key(event) {
    if (event.key.toLowerCase() === "f") this.app.board.flip();
  }

  ask(what, more = {}) {
    return this.app.wire.ask({ t: "run", do: what, ...more });
  }

  // All runs

  async list() {
    const { runs, charts, matches } = await this.ask("list");
    const rows = runs.map((run) => {
      const engines = run.engines.map(({ name }) => name).join(", ");
      const text = `${run.name}: ${engines}; ${(run.variants ?? []).join(", ")}; ${run.state}${run.games ? `, ${run.games} games` : ""}`;
      return h("li", {}, button(text, () => this.go(run.run)));
    });
    this.picture = h("img", { className: "chart", alt: "", hidden: true });
    const chart = charts.length ? select("Chart", [["", "none"], ...charts.map((name) => [name, name])], () => this.chart()) : null;
    this.charts = chart;
    this.card.replaceChildren(
      ...[
        h("h3", {}, "Runs"),
        rows.length ? h("ul", { className: "list" }, ...rows) : h("p", { className: "small" }, "None yet. Start a match below, or run hnefi web --arena FOLDER to show others."),
        chart?.row,
        this.picture,
        matches ? this.offer() : null,
      ].filter(Boolean),
    );
    say("");
  }

  async chart() {
    const name = this.charts.box.value;
    if (this.picture.src) URL.revokeObjectURL(this.picture.src);
    this.picture.hidden = !name;
    if (!name) return;
    try {
      const { svg } = await this.ask("chart", { chart: name });
      // As an image, so that no script in it can run.
      this.picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      this.picture.alt = name;
    } catch (error) {
      failed(error);
    }
  }

  go(run) {
    location.hash = `watch&run=${encodeURIComponent(run)}`;
  }

  // A match

  offer() {
    const { offer, game } = this.app;
    const players = () => {
      const { players } = offer.variants.find(({ name }) => name === rules.box.value);
      const levels = offer.levels.slice(1).map((_, at) => [`level:${at + 1}`, `Level ${at + 1}`]);
      return [...levels, ...offer.players.filter(({ name }) => name !== "default" && players.includes(name)).map(({ name }) => [`player:${name}`, name])];
    };
    const fill = () => {
      for (const [at, { box }] of [one, other].entries()) {
        const before = box.value || ["level:5", "player:simple"][at];
        box.replaceChildren(...players().map(([value, text]) => h("option", { value }, text)));
        box.value = before;
        if (!box.value) box.selectedIndex = 0;
      }
    };
    const rules = select("Rules", offer.variants.map(({ name }) => [name, name]), fill);
    const one = select("First player", [], () => {});
    const other = select("Second player", [], () => {});
    const pairs = select("Pairs", PAIRS, () => {});
    const nodes = select("Positions per move", NODES, () => {});
    rules.box.value = game.variant.name;
    pairs.box.value = "5";
    fill();
    const begin = button("Start the match", async () => {
      begin.disabled = true;
      note("Starting the match …");
      try {
        const wanted = { variant: rules.box.value, one: one.box.value, other: other.box.value, pairs: Number(pairs.box.value), nodes: Number(nodes.box.value) };
        const { run, word } = await this.ask("match", wanted);
        this.words[run] = word;
        note("");
        this.go(run);
      } catch (error) {
        failed(error);
      }
      begin.disabled = false;
    }, { className: "main" });
    return h("div", { className: "mode" }, h("h3", {}, "A match between two players"), rules.row, one.row, other.row, pairs.row, nodes.row, h("p", { className: "end" }, begin));
  }

  // One run

  async watch() {
    const { run } = this;
    this.games.clear();
    this.chosen = null;
    this.firstShown = 0;
    say("Looking for the run …");
    const { wire } = this.app;
    const key = `run ${run}`;
    wire.sessions.set(key, { take: (frame) => this.take(frame), failed: (frame) => note(frame.text) });
    this.topic = key;
    this.parts = {
      now: h("p", { className: "small" }),
      minis: h("div", { className: "minis", role: "group", "aria-label": "Games being played" }),
      table: h("div", { className: "scroll" }),
      cross: h("div", { className: "scroll" }),
      ended: h("ul", { className: "list" }),
    };
    this.of = select("Games played by", [["", "all"]], () => this.ended(0));
    this.more = button("More games", () => this.ended(this.firstShown), { hidden: true });
    const end = this.words[run] ? button("Stop the match", () => this.ask("end", { word: this.words[run] }).catch((error) => note(error.message))) : null;
    const back = button("All runs", () => {
      location.hash = "watch";
    });
    const details = h("details", {}, h("summary", {}, "Cross table: wins, draws, losses"), this.parts.cross);
    this.card.replaceChildren(
      ...[h("div", { className: "row" }, back, end), this.parts.now, this.parts.minis, this.parts.table, details, h("h3", {}, "Finished games"), this.of.row, this.parts.ended, this.more].flat().filter(Boolean),
    );
    try {
      const { meta } = await this.ask("watch", { run });
      document.getElementById("title").textContent = meta.name;
      say("");
    } catch (error) {
      this.topic = null;
      wire.sessions.delete(key);
      say(words.capital(error.message));
      this.card.replaceChildren(back);
    }
  }

  take(frame) {
    if (this.left) return;
    if (frame.game) this.play(frame.game);
    else if (frame.gone) {
      this.games.delete(frame.gone);
      if (this.chosen !== frame.gone) this.minis();
    } else if (frame.info) this.think(frame.info);
    else if (frame.engines) this.standings(frame);
  }

  play(game) {
    this.games.set(game.id, { ...this.games.get(game.id), ...game });
    const shown = this.games.get(this.chosen);
    // Move on to the next game when the one on the board is over.
    if (!shown || (shown.state === "ended" && game.state === "running" && !this.picked)) this.choose(game.id, false);
    else if (game.id === this.chosen) this.board();
    this.minis();
  }

  choose(id, picked) {
    this.chosen = id;
    this.picked = picked;
    const variant = this.app.offer.variants.find(({ name }) => name === this.games.get(id).variant);
    if (variant) this.app.dress(variant);
    this.board();
    this.minis();
  }

  /** The rows of a game's board, its last move and its captures; null if they cannot be derived. */
  place(game) {
    if (!game.fen || game.moves.includes("?")) return null;
    const rows = words.rowsOf(game.fen).map((row) => [...row]);
    const at = (square) => [rows.length - Number(square.slice(1)), FILES.indexOf(square[0])];
    let side = game.fen.split(" ")[1];
    for (const [number, m] of game.moves.entries()) {
      const squares = m.match(/[a-z]\d+/g) ?? [];
      if (squares.length !== 2 || !game.captures[number]) return null; // a game whose pieces do not move
      const [[from, file], [to, end]] = squares.map(at);
      rows[to][end] = rows[from][file];
      rows[from][file] = ".";
      for (const square of game.captures[number]) {
        const [rank, taken] = at(square);
        rows[rank][taken] = ".";
      }
      side = side === "a" ? "d" : "a";
    }
    const last = game.moves.at(-1);
    return { rows: rows.map((row) => row.join("")), side, m: last, x: game.captures.at(-1) ?? [] };
  }

  board() {
    const game = this.games.get(this.chosen);
    const { board, offer } = this.app;
    const variant = offer.variants.find(({ name }) => name === game.variant);
    const place = variant && this.place(game);
    board.setLegal([]);
    if (place) {
      board.setPosition(place.rows, place.m ? { m: place.m, x: place.x } : null);
      board.mark({ last: place.m?.match(/[a-z]\d+/g) ?? [], taken: place.x, arrows: [] });
    }
    const ply = game.opening.length + game.moves.length;
    const who = `${game.attackers} against ${game.defenders}`;
    if (game.state === "ended") say(`Game ${game.id}, ${who}: ${variant && game.reason ? words.ending({ result: game.winner ?? "draw", reason: game.reason }, variant.sides) : "over."}`);
    else say(`Game ${game.id}, ${who}, move ${ply}.${variant && !place ? " Its board appears when the game is over." : ""}`);
  }

  think(info) {
    if (info.id !== this.chosen) return;
    const who = this.games.get(info.id)?.[info.side === "a" ? "attackers" : "defenders"];
    const score = info.mate === null || info.mate === undefined ? ((info.cp ?? 0) / 100).toFixed(2) : `mate ${info.mate}`;
    this.parts.now.textContent = `${who}: ${score} at depth ${info.depth ?? "?"}, ${(info.pv ?? []).toString().split(/[ ,]/).slice(0, 6).join(" ")}`;
  }

  minis() {
    const running = [...this.games.values()].filter((game) => game.state === "running" || game.id === this.chosen).slice(-MINIS);
    this.parts.minis.replaceChildren(
      ...running.map((game) => {
        const place = this.place(game);
        const score = game.cp.at(-1);
        const text = `${game.id} ${game.attackers} – ${game.defenders}${score === null || score === undefined ? "" : ` ${(score / 100).toFixed(2)}`}`;
        const one = button("", () => this.choose(game.id, true), { "aria-pressed": String(game.id === this.chosen) });
        if (place) one.append(small(place.rows));
        one.append(h("span", {}, text));
        return one;
      }),
    );
  }

  standings(frame) {
    const { engines, cross, standings, state, games } = frame;
    const number = (value) => (value === null || value === undefined ? "" : Math.round(value));
    const head = h("tr", {}, ...["Engine", "Won", "Drawn", "Lost", "Elo"].map((text) => h("th", { scope: "col" }, text)));
    const rows = standings.map((row) =>
      h("tr", {}, h("td", {}, row.name), ...[row.wins, row.draws, row.losses].map((count) => h("td", {}, String(count ?? ""))), h("td", {}, row.elo === null || row.elo === undefined ? "" : `${number(row.elo)} ± ${number(row.elo_error)}`)),
    );
    this.parts.table.replaceChildren(h("p", { className: "small" }, `${words.capital(state)}, ${games} games finished.`), ...(rows.length ? [h("table", {}, head, ...rows)] : []));
    const top = h("tr", {}, h("th", {}), ...engines.map((_, at) => h("th", { scope: "col" }, String(at + 1))));
    const lines = engines.map((name, at) => h("tr", {}, h("td", {}, `${at + 1} ${name}`), ...cross[at].map((record) => h("td", {}, record?.join("–") ?? ""))));
    this.parts.cross.replaceChildren(h("table", {}, top, ...lines));
    if (this.of.box.options.length !== engines.length + 1) {
      this.of.box.replaceChildren(h("option", { value: "" }, "all"), ...engines.map((name) => h("option", { value: name }, name)));
    }
    if (this.counted !== games) this.ended(0);
    this.counted = games;
  }

  /** List the finished games, starting with number `first`. */
  async ended(first) {
    try {
      const { total, games } = await this.ask("games", { run: this.run, first, engine: this.of.box.value });
      const rows = games.map((game) => {
        const how = game.winner ? `${game.winner === "a" ? game.engines[0] : game.engines[1]} won` : "drawn";
        return h("li", {}, button(`${game.id} ${game.engines[0]} – ${game.engines[1]}: ${how}, ${game.reason.replaceAll("_", " ")}, ${game.plies} moves`, () => this.replay(game.id)));
      });
      if (first) this.parts.ended.append(...rows);
      else this.parts.ended.replaceChildren(...rows);
      this.firstShown = first + games.length;
      this.more.hidden = this.firstShown >= total;
    } catch {
      // The page has left the run, or asks again soon.
    }
  }

  /** Load a finished game into the page, with the engines' scores as comments. */
  async replay(id) {
    try {
      const game = await this.ask("game", { run: this.run, game: id });
      const variant = this.app.offer.variants.find(({ name }) => name === game.variant);
      if (!variant) throw new Error(`${game.variant}: this server does not have that rule set`);
      const comments = {};
      for (const [at, cp] of game.cp.entries()) {
        const mate = game.mate[at];
        if (cp !== null || mate !== null) comments[game.opening.length + at + 1] = mate === null ? (cp / 100).toFixed(2) : `mate ${mate}`;
      }
      const moves = [...game.opening, ...game.moves];
      const replayed = new Game(variant, ["human", "human"], { start: game.start, moves, comments });
      replayed.result = { result: game.winner ?? "draw", reason: game.reason };
      this.app.take(replayed);
      note(`Game ${id}: ${game.engines[0]} (${variant.sides[0]}) against ${game.engines[1]} (${variant.sides[1]}).`);
    } catch (error) {
      failed(error);
    }
  }
}

/** A small board: lines and men. */
function small(rows) {
  const [width, height] = [rows[0].length, rows.length];
  const board = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  board.append(svg("rect", { class: "plane", width, height }));
  for (let at = 0; at <= width; at += 1) board.append(svg("line", { class: "rule", x1: at, x2: at, y1: 0, y2: height }));
  for (let at = 0; at <= height; at += 1) board.append(svg("line", { class: "rule", y1: at, y2: at, x1: 0, x2: width }));
  for (const [y, row] of rows.entries()) {
    for (const [x, letter] of [...row].entries()) {
      if (letter === ".") continue;
      const kind = letter === "K" ? "king" : letter === letter.toLowerCase() ? "a" : "d";
      const man = svg("use", { href: kind === "king" ? "#king" : `#man-${kind}`, x, y, width: 1, height: 1, class: kind });
      board.append(man);
    }
  }
  return board;
}

export const mode = (app) => new Watch(app);
