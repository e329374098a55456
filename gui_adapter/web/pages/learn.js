// Lessons: each rule as a sentence, with a position to try it in. The engine says which moves are legal and what they
// do; this compares the result with what the step asks for.

import { $, button, h, select } from "./dom.js";
import { Game } from "./game.js";
import { stray } from "./records.js";
import { note, say, speak } from "./view.js";
import * as words from "./words.js";

const FIRST = "brandubh";

class Lesson {
  constructor(app) {
    this.app = app;
    this.title = "Learn";
    this.card = h("div", { className: "mode" });
    this.at = 0;
    this.steps = [];
  }

  async enter() {
    const { offer, game } = this.app;
    const asked = new URLSearchParams(location.hash.slice(1));
    const wrong = asked.has("v") ? stray(offer, location.hash) : "";
    const known = [...offer.variants].sort((one, other) => (one.game !== "tafl") - (other.game !== "tafl") || one.files - other.files);
    const name = [asked.get("v"), game.variant.name, FIRST].find((wanted) => known.some((variant) => variant.name === wanted));
    const choices = known.map((variant) => [variant.name, `${variant.name}, ${variant.files} × ${variant.ranks}`]);
    this.choice = select("Rules", choices, () => this.begin(this.choice.box.value, 0));
    this.choice.box.value = name;
    this.count = h("p", { className: "small" });
    this.text = h("div", { className: "text" });
    this.task = h("p", { className: "task" });
    this.buttons = {
      back: button("Back", () => this.show(this.at - 1)),
      swap: button("Swap sides", () => this.play("swap")),
      how: button("Show me", () => this.how(), { title: "Show me (H)" }),
      again: button("Again", () => this.show(this.at), { title: "Try again (R)" }),
      next: button("Next", () => this.next(), { className: "main", title: "Next step (N)" }),
    };
    this.card.replaceChildren(this.count, this.text, this.task, h("div", { className: "row" }, ...Object.values(this.buttons)), this.choice.row);
    await this.begin(name, Number(asked.get("step") ?? 1) - 1);
    if (wrong && this.app.shows(this)) note(wrong);
  }

  leave() {
    this.steps = [];
  }

  key(event) {
    ({ h: () => this.how(), r: () => this.show(this.at), n: () => this.next() })[event.key.toLowerCase()]?.();
  }

  async begin(name, at) {
    say("Finding positions …");
    this.steps = [];
    const wanted = (this.wanted = name);
    const variant = this.app.offer.variants.find((known) => known.name === name);
    const { steps, special } = await this.app.wire.ask({ t: "lesson", ...words.rulesOf(variant) });
    if (wanted !== this.wanted || !this.app.shows(this)) return;
    this.variant = variant;
    this.steps = steps;
    this.app.dress(this.variant, { onMove: (m) => this.play(m), onRefused: (m) => m && this.refused(m) }, special);
    this.show(Math.max(0, Math.min(steps.length - 1, at)));
  }

  show(at) {
    const step = this.steps[at];
    if (!step) return;
    this.at = at;
    this.done = false;
    this.moves = [];
    this.legal = null; // not known yet
    $("title").textContent = step.title;
    this.count.textContent = `Step ${at + 1} of ${this.steps.length}`;
    this.text.replaceChildren(...step.text.map((text) => h("p", {}, text)));
    this.task.textContent = step.task;
    this.buttons.back.disabled = at === 0;
    this.buttons.swap.hidden = true;
    this.buttons.how.disabled = this.buttons.again.disabled = !step.task;
    this.buttons.next.textContent = at + 1 < this.steps.length ? "Next" : "Play";
    history.replaceState(null, "", `#learn&v=${this.variant.name}&step=${at + 1}`);
    note("");
    say(step.task ? "Try it on the board." : "");
    speak([step.title, ...step.text, step.task].join(" "));
    this.app.board.element.setAttribute("aria-label", step.title);
    this.app.stand(step.fen, []);
    this.ask();
  }

  ask() {
    const { session } = this.app;
    if (!session.sid) session.open(this.variant); // it may have been closed as idle
    session.play(this.variant);
    session.position(this.steps[this.at].fen, this.moves);
  }

  /** An engine is connected, or connected again. */
  opened() {
    if (this.steps.length) this.ask();
  }

  state(frame) {
    const step = this.steps[this.at];
    if (!step || frame.variant !== this.variant.name || frame.moves.length !== this.moves.length || !sameBoard(frame.start ?? this.variant.startpos, step.fen)) return;
    if (frame.moves.some((m, at) => m !== this.moves[at])) return;
    if (!this.moves.length) {
      if (this.legal) return;
      this.legal = frame.legal;
      this.app.board.setLegal(step.task ? frame.legal : []);
      this.buttons.swap.hidden = !step.task || !frame.legal.some(({ m }) => m === "swap");
    } else if (!this.judged) this.judge(step, frame);
  }

  play(m) {
    this.moves = [m];
    this.judged = false;
    this.app.board.setLegal([]);
    note("");
    this.ask();
  }

  /** Compare the result of the move with the step's goal. */
  judge(step, { fen, outcome }) {
    this.judged = true;
    const [m] = this.moves;
    const move = this.legal.find((known) => known.m === m);
    this.app.stand(fen, [], move);
    this.app.board.mark({ last: m.match(/[a-z]\d+/g) ?? [], taken: move.x });
    const side = step.fen.split(" ")[1];
    const good = {
      any: true,
      take: step.squares.every((square) => move.x.includes(square)),
      go: step.squares.some((square) => m.endsWith(square)),
      win: outcome?.result === side,
    }[step.goal];
    const what = words.spoken(move);
    const end = outcome ? ` ${words.ending(outcome, this.variant.sides)}` : "";
    say(good ? `Right: ${what}.${end}` : `${words.capital(what)} is legal, but it is not the move asked for.${end}`);
    this.done = good;
    this.buttons[good ? "next" : "again"].focus({ preventScroll: true });
  }

  refused(m) {
    const { session } = this.app;
    if (!this.legal || this.moves.length) return;
    this.ask();
    session.tell(`play ${m}`);
  }

  how() {
    const step = this.steps[this.at];
    if (!step?.task) return;
    if (this.moves.length) this.show(this.at);
    this.app.board.mark({ arrows: [{ m: step.best, weight: 0.9 }] });
    say(`For example ${words.spoken({ m: step.best })}.`);
  }

  next() {
    if (this.at + 1 < this.steps.length) {
      this.show(this.at + 1);
      if (this.steps[this.at].task) this.app.board.focusBoard();
    } else if (this.variant) this.app.take(new Game(this.variant, this.variant.first === "d" ? ["level:1", "human"] : ["human", "level:1"]));
  }
}

function sameBoard(start, fen) {
  return start.split(" ")[0] === fen.split(" ")[0];
}

export const mode = (app) => new Lesson(app);
