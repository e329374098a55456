// The computer analysis of a game: a separate engine searches every position of the main line, then the server judges
// each move by how much it lost.

import { Session } from "./session.js";
import { report, rulesOf } from "./words.js";

const LINES = 2;
const PACE_MS = 200; // between two positions: the server accepts twenty frames a second from a page
const BETTER = 4; // plies of a better line to add as a variation

/** An `info` line reduced to the fields that judging needs: depth, multipv, score and the first moves. */
function essence(line) {
  const words = line.split(" ");
  const at = words.indexOf("pv");
  const pv = at < 0 ? [] : words.slice(at, at + 9);
  const head = words.slice(0, at < 0 ? words.length : at);
  const found = ["info"];
  for (const [name, length] of [["depth", 2], ["multipv", 2], ["score", 3]]) {
    const place = head.indexOf(name);
    if (place > 0) found.push(...head.slice(place, place + length));
  }
  return [...found, ...pv].join(" ");
}

export class Review {
  /** `on` = {progress(done, all), done(result), failed(text)}. Each position is searched for `nodes` nodes. */
  constructor(wire, game, nodes, on) {
    this.game = game;
    this.nodes = nodes;
    this.on = on;
    this.places = [game.root, ...game.root.tip().path()];
    this.looks = this.places.map(() => null);
    this.at = -1;
    this.session = new Session(wire, {
      opened: () => this.next(),
      state: (frame) => this.state(frame),
      reports: (lines) => lines.forEach((line) => this.report(line)),
      bestmove: (_, n) => n === this.asked && this.next(),
      complaint: (text) => this.fail(text),
      closed: (text) => this.fail(text),
    });
    this.session.open(game.variant);
  }

  next() {
    this.at += 1;
    this.on.progress(this.at, this.places.length);
    if (this.at === this.places.length) this.finish();
    else {
      const rest = PACE_MS - (performance.now() - (this.began ?? -PACE_MS));
      this.pending = setTimeout(() => this.ask(), rest);
    }
  }

  ask() {
    this.began = performance.now();
    this.lines = [];
    this.asked = null;
    this.told = this.session.position(this.game.start, this.places[this.at].moves());
  }

  /** The server has reported the position; now search it. */
  state(frame) {
    const node = this.places[this.at];
    if (this.over || !node || this.asked !== null || !this.told || frame.last_in < this.told) return;
    if (!node.state) node.learn(frame);
    const { side, outcome, legal } = frame;
    this.looks[this.at] = { side, outcome, choices: legal.length, lines: this.lines };
    if (outcome) this.next();
    else {
      this.session.choose("level:10", LINES);
      this.asked = this.session.tell(`go nodes ${this.nodes}`);
    }
  }

  report(line) {
    const node = this.places[this.at];
    const found = node?.state && report(line, node.state.side);
    if (!found || found.line > LINES) return;
    this.lines[found.line - 1] = essence(line);
    if (found.line === 1) node.score = found;
  }

  /** Stop, and judge what is known. */
  stop() {
    if (this.over) return;
    // The last search may be incomplete.
    if (this.at < this.looks.length) this.looks[this.at] = null;
    this.finish();
  }

  async finish() {
    this.over = true;
    clearTimeout(this.pending);
    this.session.close();
    const moves = this.places.slice(1).map((node) => node.m);
    try {
      const looks = this.looks.map((look) => look && { ...look, lines: look.lines.filter(Boolean) });
      const result = await this.session.wire.ask({ t: "judge", ...rulesOf(this.game.variant), moves, looks });
      this.write(result);
      this.on.done(result);
    } catch (error) {
      this.on.failed(error.message);
    }
  }

  fail(text) {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.pending);
    this.session.close();
    this.on.failed(text);
  }

  /** Write signs, remarks and better lines into the tree. */
  write(result) {
    result.chances.forEach((chance, at) => {
      this.places[at].chance = chance;
    });
    result.moves.forEach(({ sign, said, better }, at) => {
      const node = this.places[at + 1];
      node.sign = sign;
      node.remark = said;
      let line = node.parent;
      for (const m of better.slice(0, BETTER)) line = line.play({ m, x: null });
    });
  }
}
