// Puzzles: proven positions. The server decides which moves are right and how a wrong one is refuted; this shows it.

import { button, h, select } from "./dom.js";
import { recall, remember } from "./settings.js";
import { failed, note, say, speak } from "./view.js";
import * as words from "./words.js";

const STEP_MS = 700;
const RATINGS = [["", "any"], ["-1250", "up to 1250"], ["1250-1550", "1250 to 1550"], ["1550-", "above 1550"]];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Puzzles {
  constructor(app) {
    this.app = app;
    this.title = "Puzzles";
    this.turn = 0; // number of the last request; late answers to earlier ones are dropped
    this.card = h("div", { className: "mode" });
  }

  async enter() {
    const { wire } = this.app;
    const offer = await wire.ask({ t: "puzzles" });
    const all = offer.variants.reduce((sum, { count }) => sum + count, 0);
    const again = () => this.next();
    this.variant = select("Rules", [["", `all (${all})`], ...offer.variants.map(({ name, count }) => [name, `${name} (${count})`])], again);
    this.theme = select("Theme", [["", "all"], ...offer.themes.map(({ name, text, count }) => [name, `${text} (${count})`])], again);
    this.rating = select("Rating", RATINGS, again);
    this.about = h("p", { className: "small" });
    this.score = h("p", { className: "small", role: "status" });
    this.buttons = {
      hint: button("Hint", () => this.hint(), { title: "Hint (H)" }),
      solution: button("Solution", () => this.solution()),
      retry: button("Try again", () => this.retry(), { title: "Try again (R)" }),
      next: button("Next", () => this.next(), { className: "main", title: "Next puzzle (N)" }),
    };
    this.card.replaceChildren(
      this.about,
      h("div", { className: "row" }, ...Object.values(this.buttons)),
      this.score,
      h("details", {}, h("summary", {}, "Which puzzles"), this.variant.row, this.theme.row, this.rating.row),
    );
    await this.next(/puzzle=([\w-]+)/.exec(location.hash)?.[1]);
  }

  leave() {
    this.turn += 1;
  }

  /** The connection is back; the server has forgotten which puzzle is shown. */
  async again() {
    const answer = this.start && (await this.ask({ do: "show", puzzle: this.start.puzzle.id }));
    if (answer) this.begin(answer);
  }

  key(event) {
    ({ h: () => this.hint(), r: () => this.retry(), n: () => this.next() })[event.key.toLowerCase()]?.();
  }

  /** The answer to a request; null if it failed or another request followed meanwhile. */
  async ask(what) {
    const turn = (this.turn += 1);
    try {
      const answer = await this.app.wire.ask({ t: "puzzle", scores: recall("puzzles") ?? "", ...what });
      if (answer.scores) remember("puzzles", answer.scores);
      if (turn !== this.turn || !this.app.shows(this)) return null;
      this.rated(answer);
      return answer;
    } catch (error) {
      if (turn === this.turn && this.app.shows(this)) failed(error);
      return null;
    }
  }

  rated({ rating, change, solved_ever, failed_ever }) {
    const by = change === undefined || change === null ? "" : ` (${change > 0 ? "+" : ""}${Math.round(change)})`;
    this.score.textContent = `Your rating: ${rating}${by}; ${solved_ever} solved, ${failed_ever} failed`;
  }

  /** Load the puzzle of that name, or one that matches the filters. */
  async next(named) {
    const [low, high] = this.rating.box.value.split("-");
    say("Looking for a puzzle …");
    const wanted = { variant: this.variant.box.value, theme: this.theme.box.value, low: Number(low ?? 0), high: Number(high ?? 0) };
    const answer = await this.ask(named ? { do: "show", puzzle: named } : { do: "next", ...wanted });
    if (answer) this.begin(answer);
    else if (this.app.shows(this)) say("");
  }

  begin(answer) {
    this.start = this.place = answer;
    const { id, variant, rating, tries, themes } = answer.puzzle;
    this.app.dress(variant, { onMove: (m) => this.play(m), onRefused: (m) => m && this.play(m) }, answer.special);
    this.done = false;
    document.getElementById("title").textContent = `${words.capital(answer.task)}.`;
    this.about.textContent = `${id}: ${variant}, rated ${rating}${tries ? `, tried ${tries === 1 ? "once" : `${tries} times`}` : ""}`;
    this.about.title = themes.join(", ");
    history.replaceState(null, "", `#puzzles&puzzle=${id}`);
    note("");
    this.stand(answer);
    this.app.board.element.setAttribute("aria-label", `Puzzle: ${answer.task}`);
    say("Find the move.");
    speak(answer.task);
  }

  /** Show the position of an answer and allow moves. */
  stand(answer) {
    this.place = answer;
    this.wrong = false;
    this.app.stand(answer.fen, this.done ? [] : answer.legal);
    this.buttons.hint.disabled = this.buttons.solution.disabled = this.done;
  }

  async play(m) {
    const { board } = this.app;
    if (this.done || this.wrong) return;
    const place = this.place;
    board.setLegal([]);
    note("");
    say("…");
    const answer = await this.ask({ do: "try", move: m, ply: place.ply });
    if (!answer) {
      if (!this.app.shows(this)) return;
      if (this.place === place) board.setLegal(place.legal);
      say("Find the move.");
      return;
    }
    if (!(await this.walk(answer))) return;
    say(answer.text);
    if (!answer.right) {
      this.wrong = true;
      this.place = { ...answer, ...pick(place), ply: place.ply };
      this.buttons.retry.focus({ preventScroll: true });
      return;
    }
    this.done = answer.solved;
    if (this.done) {
      say(`${answer.text} ${answer.change > 0 ? "Solved." : "Solved, with help."}`);
      this.buttons.next.focus({ preventScroll: true });
    }
    this.stand({ ...answer, ply: answer.ply });
    this.marked(answer.steps.at(-1));
  }

  /** Play the steps of an answer one by one; false if another request interrupted them. */
  async walk({ steps }) {
    const { turn } = this;
    for (const [at, step] of steps.entries()) {
      if (at) await wait(STEP_MS);
      if (turn !== this.turn) return false;
      this.app.stand(step.fen, [], step);
      this.marked(step);
      if (at) speak(words.spoken(step));
    }
    return true;
  }

  marked(step) {
    this.app.board.mark({ last: step.m.match(/[a-z]\d+/g), taken: step.x, arrows: [] });
  }

  /** Go back: to where a wrong move was made, otherwise to the start. */
  retry() {
    this.turn += 1;
    note("");
    if (!this.wrong) {
      this.done = false;
      this.place = this.start;
    }
    this.stand(this.place);
    say("Find the move.");
    this.app.board.focusBoard();
  }

  async hint() {
    if (this.done) return;
    if (this.wrong) this.retry();
    const answer = await this.ask({ do: "hint", ply: this.place.ply });
    if (!answer) return;
    say(answer.text);
    const squares = answer.mark.match(/[a-z]\d+/g);
    if (squares.length > 1) this.app.board.mark({ arrows: [{ m: answer.mark, weight: 0.9 }] });
    else this.app.board.mark({ last: squares });
  }

  async solution() {
    if (this.done) return;
    if (this.wrong) this.retry();
    const answer = await this.ask({ do: "solution", ply: this.place.ply });
    if (!answer) return;
    this.done = true;
    this.stand({ ...this.place });
    if (await this.walk(answer)) say(answer.text);
  }
}

function pick({ fen, legal }) {
  return { fen, legal };
}

export const mode = (app) => new Puzzles(app);
