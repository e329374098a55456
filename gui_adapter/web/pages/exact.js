// The exact value of every move in positions that a solved table covers. This uses a second engine: tables answer only
// while an engine is idle, and the game's own engine may be searching.

import { Session } from "./session.js";
import * as words from "./words.js";

const $ = (id) => document.getElementById(id);

export class Exact {
  constructor(wire) {
    this.session = new Session(wire, {
      opened: () => {
        this.asked = this.answered = 0;
        this.ask();
      },
      solved: (text) => this.take(text),
      complaint: (why) => {
        if (why.startsWith("tb: ")) this.answered += 1;
        if (this.answered === this.asked) this.say(words.capital(why.replace(/^tb: /, "")));
      },
      closed: (why) => this.say(why),
    });
    this.game = this.node = null;
    this.asked = this.answered = 0; // answers come in the order of the requests
  }

  /** Show the values of the current position, or nothing if they are turned off. */
  show(game) {
    const wanted = $("exact").checked && game.variant.solved && game.current.state && !game.current.state.outcome;
    if (!wanted) {
      this.node = null;
      this.session.close();
      this.say("");
    } else if (this.node !== game.current) {
      this.game = game;
      this.node = game.current;
      this.say("Looking the position up …");
      if (this.session.sid) this.ask();
      else this.session.open(game.variant);
    }
  }

  ask() {
    if (!this.node) return;
    this.session.play(this.game.variant);
    this.session.set("TablePath", "shipped");
    this.session.position(this.game.start, this.node.moves());
    if (this.session.tell("tb")) this.asked += 1;
  }

  say(text) {
    $("exact-text").textContent = text;
    $("exact-moves").replaceChildren();
  }

  /** One line of the answer: first the value of the position, then its moves, best first. */
  take(text) {
    const [first, ...rest] = text.split(" ");
    const value = ["win", "loss", "draw", "open"].includes(first);
    if (value) this.answered += 1;
    if (this.answered !== this.asked || !this.node) return; // for a position no longer shown
    if (value) this.say(this.sentence(text));
    else $("exact-moves").append(row(first, rest));
  }

  /** `win 7` for the side to move becomes “Attackers win in 7.” */
  sentence(text) {
    const [kind, ...rest] = text.split(" ");
    if (kind === "draw") return "Neither side can force a win: a draw.";
    if (kind === "open") return "Neither side can force a win; the result depends on the earlier moves.";
    const mover = this.node.state.side === "a" ? 0 : 1;
    return `${words.capital(this.game.variant.sides[kind === "win" ? mover : 1 - mover])} win ${within(rest)}.`;
  }
}

function within([plies, atMost]) {
  if (plies === "repetition") return "by repetition";
  return atMost === "at_most" ? `in at most ${plies}` : `in ${plies}`;
}

function row(move, [kind, ...rest]) {
  const item = document.createElement("li");
  const [value, name] = [document.createElement("b"), document.createElement("span")];
  const mark = rest.find((word) => word === "best" || word === "keeps");
  value.textContent = kind === "win" || kind === "loss" ? `${kind} ${within(rest)}` : kind;
  name.textContent = words.moveText({ m: move }) + (mark === "best" ? ", best" : mark ? ", keeps the result" : "");
  item.className = mark ?? (kind === "unknown" ? "" : "loses");
  item.append(value, name);
  return item;
}
