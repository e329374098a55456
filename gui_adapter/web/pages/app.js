// The page: one game, the tree of its moves, who plays, what the engine thinks. It knows no rules: what may be moved,
// what is captured and how a game ends is what the server says about each place.

import { Board, squaresOf } from "./board.js";
import { NewGame, askToken, loading, saving } from "./dialogs.js";
import { Node } from "./tree.js";
import { Wire } from "./wire.js";
import * as words from "./words.js";

const $ = (id) => document.getElementById(id);
const FIRST = "brandubh"; // small: a first game is soon over
const HINT_NODES = 300000;
const FILL_MS = 80; // the server takes twenty frames a second

class App {
  constructor() {
    this.offer = null;
    this.variant = null;
    this.players = ["human", "level:3"];
    this.think = 1000;
    this.root = this.current = this.live = new Node();
    this.start = null;
    this.result = null; // {result, reason} of a game that the rules have not ended
    this.clock = null;
    this.search = null;
    this.told = {}; // options that the engine was told
    this.ready = false; // the session has answered
    this.paused = false;
    this.reports = [];
    this.waiting = new Map(); // answers by the number of the request
    this.asked = 0;
    this.undoing = null; // how to go back where a position is refused
    this.theme();
    this.wire = new Wire({
      welcome: (frame) => this.welcome(frame),
      frame: (frame) => this.frame(frame),
      status: (up) => this.connected(up),
      token: askToken,
    });
    this.controls();
    setInterval(() => this.tick(), 100);
  }

  // The server

  welcome(frame) {
    const first = this.offer === null;
    this.offer = frame;
    if (first) {
      this.dialog = new NewGame(frame, (choice) => this.begin(choice));
      const kept = location.hash.length > 1 ? null : this.kept();
      const link = this.fromLink(kept?.link ?? location.hash);
      const name = link?.variant ?? (frame.default.variant || FIRST);
      const variant = frame.variants.find((known) => known.name === name) ?? frame.variants[0];
      if (frame.default.player) this.players[1] = `player:${frame.default.player}`;
      if (link) this.players = kept?.players ?? ["human", "human"];
      this.think = kept?.think ?? this.think;
      this.take(variant, link?.start ?? null, link?.moves ?? []);
    } else if (!this.wire.sid) this.openSession();
    else this.show(this.current, true);
  }

  connected(up) {
    this.up = up;
    document.body.classList.toggle("offline", !up);
    if (!up) {
      this.search = null;
      this.say("The connection is lost. Trying again …");
    }
  }

  openSession() {
    this.ready = false;
    this.wire.sid = null;
    this.wire.count = this.wire.heard = 0;
    this.told = {};
    this.search = null;
    this.engineVariant = this.variant.name;
    this.wire.put({ t: "open", id: ++this.asked, variant: this.variant.name });
  }

  frame(frame) {
    switch (frame.t) {
      case "opened":
        this.wire.sid = frame.s;
        this.show(this.current, true);
        break;
      case "state":
        this.state(frame);
        break;
      case "line":
        this.line(frame.text, frame.n);
        break;
      case "info":
        for (const line of frame.lines) this.report(line);
        this.showAnalysis();
        break;
      case "record":
        this.waiting.get(frame.id)?.resolve(frame);
        this.waiting.delete(frame.id);
        break;
      case "closed":
        this.lost("The game's engine was closed. Your next move starts another.");
        break;
      case "error":
        this.failed(frame);
        break;
    }
  }

  failed(frame) {
    const waiting = this.waiting.get(frame.id);
    if (waiting) {
      this.waiting.delete(frame.id);
      waiting.reject(new Error(frame.text));
      return;
    }
    if (frame.code === "gone" && frame.s === this.wire.sid) {
      this.openSession();
      return;
    }
    this.note(frame.text);
    if (frame.code === "no_session" || (frame.s && frame.s === this.wire.sid)) this.lost(frame.text);
  }

  lost(text) {
    this.wire.sid = null;
    this.ready = false;
    this.search = null;
    this.say(text);
  }

  ask(frame) {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.wire.put({ ...frame, id });
    });
  }

  /** A line for the engine; opens a session where there is none. */
  tell(text) {
    return this.wire.sid ? this.wire.line(text) : 0;
  }

  // Games

  /** Another game by the choices of the dialog. */
  begin({ variant, players, think, clock }) {
    this.players = players;
    this.think = think;
    this.take(variant, null, []);
    this.clock = clock && { left: [clock.seconds * 1000, clock.seconds * 1000], increment: clock.increment * 1000, at: null };
    this.render();
  }

  /** Play `moves` from `start` (a FEN, null for the usual one). */
  take(variant, start, moves, comments = {}) {
    this.halt();
    this.variant = variant;
    this.start = start;
    this.result = this.clock = null;
    this.paused = false;
    this.reports = [];
    this.root = new Node();
    let node = this.root;
    moves.forEach((m, at) => {
      node = node.play({ m, x: null });
      node.comment = comments[at + 1] ?? "";
    });
    this.live = node;
    this.turned = this.players[0] !== "human" && this.players[1] === "human";
    const options = {
      files: variant.files,
      ranks: variant.ranks,
      slant: variant.game === "hex",
      special: {},
      pieces: words.piecesOf(variant),
      onMove: (m) => this.person(m),
      onRefused: (m, from, to) => this.refused(m, from, to),
      onSay: (text) => this.speak(text),
    };
    if (this.board) this.board.reset(options);
    else this.board = new Board($("board"), options);
    this.board.flipped = false;
    $("board").setAttribute("aria-label", `${variant.name}, ${variant.files} by ${variant.ranks}`);
    this.board.setPosition(words.rowsOf(start ?? variant.startpos));
    this.rules();
    this.note("");
    if (!this.wire.sid) this.openSession();
    else if (this.engineVariant !== variant.name) {
      this.engineVariant = variant.name;
      this.tell(`variant ${variant.name}`);
    }
    this.show(node, true);
  }

  /** Look at a place of the game. */
  show(node, anew = false) {
    const before = this.current;
    this.current = node;
    if (this.search && this.search.node !== node) this.halt();
    this.reports = [];
    if (!node.state || anew) this.position(node);
    this.draw(node.parent === before ? { m: node.m, x: node.x ?? [] } : null);
    this.render();
    this.step();
  }

  position(node) {
    const where = this.start ? `fen ${this.start}` : "startpos";
    const moves = node.moves();
    this.tell(`position ${where}${moves.length ? ` moves ${moves.join(" ")}` : ""}`);
  }

  state(frame) {
    this.ready = true;
    if (frame.variant !== this.variant.name) return;
    if (this.reading) {
      // A board in OpenTafl's notation: the engine has said what it is as a FEN.
      const { resolve, text } = this.reading;
      if (frame.start !== null && frame.start !== this.readingFrom) {
        this.reading = null;
        resolve(frame.start, text);
      }
      return;
    }
    if ((frame.start ?? null) !== this.start) return;
    const node = this.find(frame.moves);
    if (!node) return;
    this.undoing = null;
    const first = !node.state;
    node.learn(frame);
    if (JSON.stringify(this.board.special) !== JSON.stringify(frame.special)) {
      this.board.special = frame.special;
      this.board.build();
    }
    this.fillIn();
    if (!first && node === this.current && this.board.legal.size) return;
    if (node !== this.current) this.showMoves();
    else {
      this.draw(this.arriving === node ? { m: node.m, x: node.x ?? [] } : null);
      this.arriving = null;
      if (node === this.live) this.arrived();
      this.render();
      this.step();
    }
  }

  /** What the moves of a game that was loaded have captured: one place after the other, while the engine rests. */
  fillIn() {
    clearTimeout(this.filling);
    this.filling = setTimeout(() => {
      const next = [this.root, ...this.live.path()].find((node) => !node.state && node.children.some((child) => child.x === null));
      if (next && next !== this.current && !this.search && !this.reading) this.position(next);
    }, FILL_MS);
  }

  find(moves) {
    let node = this.root;
    for (const m of moves) {
      node = node.children.find((child) => child.m === m);
      if (!node) return null;
    }
    return node;
  }

  get side() {
    return this.current.state?.side ?? null;
  }

  get over() {
    return this.live.state?.outcome ?? this.result;
  }

  engineOf(side) {
    const who = this.players["ad".indexOf(side)];
    return who === "human" ? null : who;
  }

  /** Whether a person may move here. */
  get mine() {
    const { state } = this.current;
    if (!state || state.outcome) return false;
    if (this.current !== this.live) return true; // a variation
    return !this.result && (!this.engineOf(state.side) || this.paused);
  }

  person(m) {
    if (!this.mine) return;
    this.note("");
    this.play(m);
  }

  play(m) {
    const node = this.current;
    const move = node.state.legal.find((known) => known.m === m);
    if (!move) return;
    if (node !== this.live) this.clock = null; // another line than the one that was timed
    this.halt();
    const child = node.play(move);
    if (this.clock) {
      this.stopClock(node.state.side);
      this.clock.left["ad".indexOf(node.state.side)] += this.clock.increment;
    }
    this.result = null;
    const name = this.variant.sides["ad".indexOf(node.state.side)];
    this.speak(`${words.capital(name)}: ${words.spoken(child)}`);
    this.live = child;
    child.promote();
    this.arriving = child.state ? null : child;
    this.current = child;
    this.reports = [];
    this.position(child);
    if (child.state) {
      this.draw({ m: child.m, x: child.x ?? [] });
      this.arrived();
    }
    this.board.setLegal([]);
    this.render();
    if (child.state) this.step();
  }

  /** The rules have said where the game stands now. */
  arrived() {
    const { state } = this.live;
    if (state.outcome) {
      this.stopClock();
      this.speak(words.ending(state.outcome, this.variant.sides));
    } else if (this.clock && !this.result && !this.clock.at) this.clock.at = { side: state.side, since: performance.now() };
  }

  /** What comes next: the engine's move, or its thoughts. */
  step() {
    const node = this.current;
    if (!this.wire.sid || !node.state) return;
    const { side, outcome } = node.state;
    const who = node === this.live && !this.over && !this.paused ? this.engineOf(side) : null;
    if (who) {
      if (!this.search || this.search.purpose !== "move") this.go("move", who);
    } else if ($("analyse").checked && !outcome) {
      if (!this.search) this.go("analysis", "level:10");
    } else if (this.search && this.search.purpose !== "hint") this.halt();
  }

  go(purpose, who) {
    this.halt();
    const node = this.current;
    const [kind, name] = who.split(/:(.*)/);
    this.set("Player", kind === "player" ? name : "default");
    this.set("SkillLevel", kind === "level" ? name : "10");
    this.set("MultiPV", purpose === "analysis" ? $("lines").value : "1");
    this.position(node);
    let limits = "infinite";
    if (purpose === "hint") limits = `nodes ${HINT_NODES}`;
    else if (purpose === "move" && this.clock) {
      const [a, d] = this.clock.left.map((ms) => Math.max(1, Math.round(ms)));
      limits = `atime ${a} dtime ${d} ainc ${this.clock.increment} dinc ${this.clock.increment}`;
    } else if (purpose === "move") limits = `movetime ${this.think}`;
    this.reports = [];
    this.search = { n: this.tell(`go ${limits}`), node, purpose };
    this.render();
  }

  set(name, value) {
    if (this.told[name] === value) return;
    this.told[name] = value;
    this.tell(`setoption name ${name} value ${value}`);
    if (name === "Player") delete this.told.SkillLevel; // a player brings options of its own
  }

  halt() {
    if (!this.search) return;
    this.search = null;
    this.tell("stop");
  }

  line(text, answers) {
    if (text.startsWith("bestmove ")) {
      const { search } = this;
      if (!search || answers !== search.n) return;
      this.search = null;
      this.answered(search, text.split(" ")[1]);
    } else if (text.startsWith("info string compiling ")) {
      this.say(`The engine gets ready: ${text.slice(22)}`);
    } else if (text.startsWith("info string error ")) this.complaint(text.slice(18));
    else if (text.startsWith("info string closing")) this.say("The server closes this game.");
    else if (text.startsWith("info ")) {
      this.report(text);
      this.showAnalysis();
    }
  }

  answered({ purpose, node }, move) {
    if (purpose === "move" && node === this.live && this.current === node) {
      if (move === "resign") this.finish(node.state.side === "a" ? "d" : "a", "resignation");
      else this.play(move);
    } else if (purpose === "hint") {
      this.board.mark({ arrows: [{ m: move, weight: 0.9 }] });
      this.note(`Hint: ${words.moveText({ m: move, x: null })}`);
      this.render();
      this.step();
    } else this.render();
  }

  complaint(text) {
    const why = /^play \S+: (.*)$/.exec(text);
    if (why) {
      this.note(`Not possible: ${why[1]}.`);
      return;
    }
    if (this.reading) {
      const { reject } = this.reading;
      this.reading = null;
      reject(new Error(text));
      return;
    }
    if (text.startsWith("position") && this.undoing) {
      const back = this.undoing;
      this.undoing = null;
      back(text);
      return;
    }
    this.note(text);
  }

  refused(m, from, to) {
    const { state } = this.current;
    if (!state) return;
    if (state.outcome) this.note("The game is over.");
    else if (!this.mine) this.note("It is not your turn.");
    else if (m || this.board.placing()) {
      this.halt();
      this.position(this.current);
      this.tell(`play ${m ?? to}`);
      this.step();
    }
  }

  finish(result, reason) {
    this.halt();
    this.result = { result, reason };
    this.stopClock();
    this.speak(words.ending(this.result, this.variant.sides));
    this.show(this.current);
  }

  // Clocks

  stopClock() {
    const { clock } = this;
    if (!clock?.at) return;
    clock.left["ad".indexOf(clock.at.side)] -= performance.now() - clock.at.since;
    clock.at = null;
  }

  leftOf(side) {
    const { clock } = this;
    const running = clock.at?.side === side ? performance.now() - clock.at.since : 0;
    return clock.left["ad".indexOf(side)] - running;
  }

  tick() {
    const { clock } = this;
    if (!clock) return;
    this.showClocks();
    if (clock.at && this.leftOf(clock.at.side) <= 0) this.finish(clock.at.side === "a" ? "d" : "a", "time");
  }

  showClocks() {
    for (const [where, side] of this.seats()) {
      const face = $(`seat-${where}`).querySelector(".clock");
      face.textContent = this.clock ? words.clockText(this.leftOf(side)) : "";
      face.classList.toggle("low", Boolean(this.clock) && this.leftOf(side) < 20000);
    }
  }

  // What is shown

  seats() {
    const bottom = this.turned ? "d" : "a";
    return [["top", bottom === "a" ? "d" : "a"], ["bottom", bottom]];
  }

  draw(moved) {
    const { state } = this.current;
    if (!state) return;
    this.board.setPosition(words.rowsOf(state.fen), moved);
    this.board.setLegal(this.mine ? state.legal : []);
    $("board").classList.toggle("placing", this.board.placing());
    const last = this.current.m ? squaresOf(this.current.m) : null;
    this.board.mark({ last: (last ?? []).filter(Boolean), taken: this.current.x ?? [], arrows: [] });
  }

  render() {
    const { variant, current, live } = this;
    if (!variant) return;
    const { state } = current;
    $("title").textContent = variant.name;
    document.title = `${variant.name} – hnefi`;
    for (const [where, side] of this.seats()) {
      const seat = $(`seat-${where}`);
      const at = "ad".indexOf(side);
      seat.querySelector(".who").textContent = `${words.capital(variant.sides[at])}: ${this.named(side)}`;
      const taken = state?.captures?.[at] ?? 0;
      seat.querySelector(".taken").textContent = taken ? `${taken} captured` : "";
      seat.classList.toggle("turn", state?.side === side && !state.outcome && !(current === live && this.result));
    }
    this.showClocks();
    this.say(this.sentence());
    const moving = this.search?.purpose === "move";
    $("first").disabled = $("back").disabled = !current.parent;
    $("on").disabled = $("last").disabled = !current.children.length;
    $("undo").disabled = !current.parent;
    $("resign").disabled = Boolean(this.over) || current !== live || !this.players.includes("human");
    $("hint").disabled = !this.mine;
    $("swap").hidden = !state?.legal.some((move) => move.m === "swap") || !this.mine;
    $("pause").hidden = this.players.includes("human") && !this.paused;
    $("pause").textContent = this.paused ? "Go on" : "Pause";
    $("board").classList.toggle("busy", moving);
    this.showMoves();
    this.showAnalysis();
  }

  named(side) {
    const who = this.engineOf(side);
    if (!who) return this.players.filter((player) => player === "human").length === 1 ? "you" : "a person";
    const [kind, name] = who.split(/:(.*)/);
    return kind === "level" ? `engine, level ${name}` : name;
  }

  sentence() {
    const { state } = this.current;
    if (!state) return "The engine gets ready …";
    if (state.outcome) return words.ending(state.outcome, this.variant.sides);
    if (this.result && this.current === this.live) return words.ending(this.result, this.variant.sides);
    const name = words.capital(this.variant.sides["ad".indexOf(state.side)]);
    if (this.current !== this.live) return `${name} to move here. Your move begins a variation.`;
    if (this.engineOf(state.side)) return this.paused ? `${name} to move. Paused.` : `${name} think …`;
    return this.players.includes("human") && this.players.some((who) => who !== "human") ? `Your move: ${this.variant.sides["ad".indexOf(state.side)]}.` : `${name} to move.`;
  }

  say(text) {
    if ($("status").textContent !== text) $("status").textContent = text;
  }

  note(text) {
    $("note").textContent = text;
  }

  speak(text) {
    $("live").textContent = text;
  }

  rules() {
    const lines = this.variant.rules.length ? this.variant.rules : [this.variant.description];
    $("rules").replaceChildren(
      ...lines.map((text) => {
        const item = document.createElement("li");
        item.textContent = text;
        return item;
      }),
    );
    $("source").textContent = this.variant.source ? `Source: ${this.variant.source}` : "";
  }

  showMoves() {
    const list = $("moves");
    const parts = [];
    const number = (text, className = "no") => {
      const element = document.createElement("span");
      element.className = className;
      element.textContent = text;
      parts.push(element);
    };
    const put = (node, variation) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words.moveText(node);
      if (variation) button.className = "var";
      if (node === this.current) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => this.show(node));
      parts.push(button);
      if (node.comment) number(node.comment, "var");
    };
    const walk = (from, variation) => {
      let node = from;
      let fresh = true;
      while (node.children.length) {
        const [main, ...others] = node.children;
        if (main.ply % 2 || fresh) number(`${Math.ceil(main.ply / 2)}${main.ply % 2 ? "." : "…"}`);
        put(main, variation);
        fresh = false;
        for (const other of others) {
          number(`( ${Math.ceil(other.ply / 2)}${other.ply % 2 ? "." : "…"}`, "var");
          put(other, true);
          walk(other, true);
          number(")", "var");
          fresh = true;
        }
        node = main;
      }
    };
    walk(this.root, false);
    list.replaceChildren(...parts);
    // Not scrollIntoView, which would move the page as well, and the board out of sight.
    const at = list.querySelector("[aria-current]");
    if (at) list.scrollTop += at.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
  }

  // Thoughts

  report(line) {
    const side = this.search?.node.state?.side ?? this.current.state?.side;
    const found = words.report(line, side);
    if (!found || !side) return;
    this.reports[found.line - 1] = found;
    if (found.line === 1) this.current.score = found;
  }

  showAnalysis() {
    const on = $("analyse").checked;
    $("bar").hidden = !on;
    const known = on ? this.reports.filter(Boolean) : [];
    const best = known[0] ?? (on ? this.current.score : null);
    const attackersUp = this.turned;
    $("bar").classList.toggle("flipped", attackersUp);
    if (best) {
      const part = Math.round(words.share(best) * 1000) / 10;
      $("bar").firstElementChild.style.height = `${part}%`;
      const text = words.scoreText(best);
      $("bar").querySelector("output").textContent = best.mate === null ? (best.cp / 100).toFixed(1) : `#${Math.abs(best.mate)}`;
      $("bar").setAttribute("aria-label", `${words.capital(this.variant.sides[0])} ${part} percent, ${text}`);
    }
    const rows = known.map((found) => {
      const row = document.createElement("li");
      const [score, line] = [document.createElement("b"), document.createElement("span")];
      score.textContent = words.scoreText(found);
      line.textContent = found.pv.map((m) => words.moveText({ m })).join("  ");
      row.append(score, line);
      return row;
    });
    $("pv").replaceChildren(...rows);
    $("speed").textContent = best && known.length ? `depth ${best.depth}, ${words.countText(best.nodes ?? 0)} positions, ${words.countText(best.nps ?? 0)} a second` : on ? "" : "Switch it on to see what the engine thinks of this position.";
    if (on && known.length && this.search?.purpose === "analysis")
      this.board.mark({ arrows: known.filter((found) => found.pv.length).map((found, at) => ({ m: found.pv[0], weight: 0.85 - at * 0.14 })) });
  }

  // Loading, saving, links

  async load(text) {
    const trimmed = text.trim();
    if (!trimmed) throw new Error("expected a FEN or a recorded game");
    if (!/[\n[{]/.test(trimmed) && trimmed.includes("/") && !trimmed.includes(",")) {
      await this.loadPosition(trimmed);
      return;
    }
    const record = await this.ask({ t: "import", text, variant: this.variant.name });
    const variant = this.offer.variants.find((known) => known.name === record.variant);
    if (!variant) throw new Error(`${record.variant}: this page does not offer that variant`);
    this.players = ["human", "human"];
    this.take(variant, record.start, record.moves, record.comments);
    if (record.result && record.reason) this.result = { result: record.result, reason: record.reason };
    this.undoing = (why) => this.note(why);
  }

  loadPosition(text) {
    const rows = text.replace(/^\//, "").split(" ")[0].replace(/\/$/, "").split("/");
    let { variant } = this;
    if (rows.length !== variant.ranks) variant = this.offer.variants.find((known) => known.game === "tafl" && known.ranks === rows.length);
    if (!variant) return Promise.reject(new Error(`${rows.length} rows: expected a board of 5 to 19`));
    this.halt();
    if (this.engineVariant !== variant.name) {
      this.engineVariant = variant.name;
      this.tell(`variant ${variant.name}`);
    }
    const before = this.variant;
    this.variant = variant;
    this.readingFrom = this.start;
    return new Promise((resolve, reject) => {
      this.reading = { resolve, reject };
      this.tell(`position ${text.startsWith("/") ? "otn" : "fen"} ${text}`);
    }).then(
      (start) => {
        this.players = ["human", "human"];
        this.take(variant, start, []);
      },
      (error) => {
        this.variant = before;
        if (this.engineVariant !== before.name) {
          this.engineVariant = before.name;
          this.tell(`variant ${before.name}`);
        }
        this.position(this.current);
        throw error;
      },
    );
  }

  save(format) {
    const tip = this.live;
    const outcome = tip.state?.outcome ?? this.result ?? { result: "", reason: "" };
    const moves = tip.path().map((node) => node.m + (node.x ?? []).map((square) => `x${square}`).join(""));
    const players = ["a", "d"].map((side) => (this.engineOf(side) ? `hnefi ${this.named(side)}` : this.named(side)));
    return this.ask({ t: "export", format, variant: this.variant.name, start: this.start ?? "", moves, players, ...{ result: outcome.result, reason: outcome.reason } });
  }

  link(node = this.current) {
    const parts = new URLSearchParams({ v: this.variant.name });
    if (this.start) parts.set("fen", this.start);
    const moves = node.moves();
    if (moves.length) parts.set("moves", moves.join("."));
    return `${location.origin}${location.pathname}#${parts}`;
  }

  /** The game that this tab had before it was loaded anew. */
  kept() {
    try {
      return JSON.parse(sessionStorage.getItem("hnefi-game"));
    } catch {
      return null; // a browser that keeps nothing
    }
  }

  keep() {
    try {
      const link = new URL(this.link(this.live)).hash;
      sessionStorage.setItem("hnefi-game", JSON.stringify({ link, players: this.players, think: this.think }));
    } catch {
      // As above.
    }
  }

  fromLink(hash = location.hash) {
    const parts = new URLSearchParams(hash.slice(1));
    const name = parts.get("v");
    if (!name) return null;
    this.undoing = (why) => this.note(`The link does not fit: ${why}`);
    const moves = (parts.get("moves") ?? "").split(".").filter((move) => /^([a-z]\d+([a-z]\d+)?|swap)$/.test(move));
    return { variant: name, start: parts.get("fen"), moves };
  }

  // Controls

  theme() {
    let name = null;
    try {
      name = localStorage.getItem("hnefi-theme");
    } catch {
      // A browser that keeps nothing has the theme of its system.
    }
    const system = matchMedia("(prefers-contrast: more)").matches ? "contrast" : matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "wood";
    const choose = (theme) => {
      document.documentElement.dataset.theme = theme;
      $("theme").value = theme;
    };
    choose(["wood", "night", "contrast"].includes(name) ? name : system);
    $("theme").addEventListener("change", () => {
      choose($("theme").value);
      try {
        localStorage.setItem("hnefi-theme", $("theme").value);
      } catch {
        // As above.
      }
    });
  }

  controls() {
    const on = (id, act) => $(id).addEventListener("click", act);
    on("new", () => this.dialog?.open(this.variant, this.players));
    on("first", () => this.show(this.root));
    on("back", () => this.current.parent && this.show(this.current.parent));
    on("on", () => this.current.children.length && this.show(this.current.children[0]));
    on("last", () => this.show(this.current.tip()));
    on("undo", () => this.takeBack());
    on("hint", () => this.mine && this.go("hint", "level:10"));
    on("flip", () => this.flip());
    on("swap", () => this.person("swap"));
    on("resign", () => this.current.state && this.finish(this.loser() === "a" ? "d" : "a", "resignation"));
    on("pause", () => {
      this.paused = !this.paused;
      if (this.paused) this.halt();
      this.show(this.current);
    });
    on("share", async () => {
      const link = this.link();
      history.replaceState(null, "", link);
      try {
        await navigator.clipboard.writeText(link);
        this.note("The link to this position is on the clipboard and in the address bar.");
      } catch {
        this.note("The link to this position is in the address bar.");
      }
    });
    $("analyse").addEventListener("change", () => {
      this.halt();
      this.reports = [];
      this.board.mark({ arrows: [] });
      this.render();
      this.step();
    });
    $("lines").addEventListener("change", () => {
      if (this.search?.purpose !== "analysis") return;
      this.halt();
      this.step();
    });
    addEventListener("pagehide", () => this.variant && this.keep());
    addEventListener("hashchange", () => {
      const link = this.fromLink();
      const variant = link && this.offer?.variants.find((known) => known.name === link.variant);
      if (!variant) return;
      this.players = ["human", "human"];
      this.take(variant, link.start, link.moves);
    });
    addEventListener("keydown", (event) => this.key(event));
    loading((text) => this.load(text));
    saving((format) => this.save(format));
  }

  key(event) {
    if (event.altKey || event.metaKey || event.target.closest?.("input, textarea, select, dialog")) return;
    const keys = { ",": "back", ".": "on", u: "undo", h: "hint", f: "flip" };
    const id = event.ctrlKey ? { ArrowLeft: "first", ArrowRight: "last" }[event.key] : keys[event.key.toLowerCase()];
    if (!id) return;
    event.preventDefault();
    $(id).click();
  }

  /** The side that gives up: a person's, whose turn it is where there are two. */
  loser() {
    const { side } = this.current.state;
    return this.engineOf(side) ? (side === "a" ? "d" : "a") : side;
  }

  flip() {
    this.turned = !this.turned;
    this.board.flip();
    this.render();
  }

  /** Back to where a person was to move. */
  takeBack() {
    let node = this.current.parent;
    while (node?.parent && node.state && this.engineOf(node.state.side) && this.players.includes("human")) node = node.parent;
    if (!node) return;
    this.halt();
    this.result = null;
    this.stopClock();
    this.live = node;
    this.show(node);
    if (node.state) this.arrived();
  }
}

new App();
