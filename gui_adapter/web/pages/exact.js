// The exact value of every move, where a solved table has the position. An engine of its own is asked: tables answer only
// while an engine rests, and that of the game may be thinking.

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
    this.asked = this.answered = 0; // answers come in the order of the questions
  }

  /** Show the values of the place that one looks at, or nothing where they are not wanted. */
  show(game) {
    const wanted = $("exact").checked && game.variant.solved && game.current.state && !game.current.state.outcome;
    if (!wanted) {
      this.node = null;
      this.session.close();
      this.say("");
    } else if (this.node !== game.current) {
      this.game = game;
      this.node = game.current;
      this.say("Asking the tables …");
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

  /** A line of the answer: first the value of the position, then the moves, the best first. */
  take(text) {
    const [first, ...rest] = text.split(" ");
    const value = ["win", "loss", "draw", "open"].includes(first);
    if (value) this.answered += 1;
    if (this.answered !== this.asked || !this.node) return; // of a place that was left
    if (value) this.say(this.sentence(text));
    else $("exact-moves").append(row(first, rest));
  }

  /** `win 7` for whoever is to move: Attackers win in 7. */
  sentence(text) {
    const [kind, ...rest] = text.split(" ");
    if (kind === "draw") return "Neither side can force a win: a draw.";
    if (kind === "open") return "Neither side can force a win: the moves played before decide.";
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
