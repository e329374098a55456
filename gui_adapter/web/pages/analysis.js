// The engine's view of the current position (bar, lines, arrows) and of the whole game (curve, verdicts, accuracy).

import { $ } from "./dom.js";
import { showCurve } from "./curve.js";
import { Review } from "./review.js";
import { note, speak } from "./view.js";
import * as words from "./words.js";


const COUNTED = ["inaccuracy", "mistake", "blunder", "missed win", "thrown win"];

export class Analysis {
  constructor(board) {
    this.board = board;
    this.reports = [];
    this.review = null;
  }

  get on() {
    return $("analyse").checked;
  }

  clear() {
    this.reports = [];
  }

  /** Take `info` lines about a node. */
  take(lines, node) {
    for (const line of lines) {
      const found = node.state && words.report(line, node.state.side);
      if (!found) continue;
      this.reports[found.line - 1] = found;
      if (found.line === 1) node.score = found;
    }
  }

  /** `arrows`: whether to draw the best moves on the board. */
  show(game, turned, arrows) {
    const known = this.on ? this.reports.filter(Boolean) : [];
    const best = known[0] ?? (this.on ? game.current.score : null);
    this.showBar(best, game.variant.sides[0], turned);
    $("pv").replaceChildren(...known.map(row));
    if (!this.on) $("speed").textContent = "Turn analysis on to see what the engine thinks of this position.";
    else $("speed").textContent = known.length ? speed(best) : "";
    if (arrows && known.length) {
      const first = known.filter((found) => found.pv.length);
      this.board.mark({ arrows: first.map((found, at) => ({ m: found.pv[0], weight: 0.85 - at * 0.14 })) });
    }
  }

  showCurve(game, choose) {
    showCurve($("curve"), game.root, game.current, choose);
    $("review").disabled = !this.review && !game.root.children.length;
    $("review").textContent = this.review ? "Stop" : "Analyse the game";
  }

  /** Analyse all positions of the game, or stop doing so. `changed` is called whenever there is more to show. */
  toggleReview(wire, game, changed) {
    if (this.review) {
      this.review.stop();
      return;
    }
    $("verdicts").hidden = true;
    const ended = () => {
      this.review = null;
      $("review-progress").hidden = true;
      changed();
    };
    this.review = new Review(wire, game, $("depth").value, {
      progress: (done, all) => {
        $("review-progress").hidden = false;
        Object.assign($("review-progress"), { max: all, value: done });
        changed();
      },
      done: (result) => {
        showVerdicts(result, game.variant.sides);
        ended();
        speak("The game is analysed.");
      },
      failed: (text) => {
        ended();
        note(`The analysis stopped: ${text}`);
      },
    });
  }

  /** Clear everything for a new game. */
  reset() {
    this.review?.fail("another game was chosen");
    this.clear();
    $("verdicts").hidden = true;
  }

  showBar(best, side, turned) {
    const bar = $("bar");
    bar.hidden = !this.on;
    bar.classList.toggle("flipped", turned);
    if (!best) return;
    const part = Math.round(words.share(best) * 1000) / 10;
    bar.firstElementChild.style.height = `${part}%`;
    bar.querySelector("output").textContent = best.mate === null ? (best.cp / 100).toFixed(1) : `#${Math.abs(best.mate)}`;
    bar.setAttribute("aria-label", `${words.capital(side)} ${part} percent, ${words.scoreText(best)}`);
  }
}

function showVerdicts({ accuracy, counts }, sides) {
  const rate = (value) => (value === null ? "–" : `${value.toFixed(0)} %`);
  const rows = [["Accuracy", ...accuracy.map(rate)]];
  for (const word of COUNTED) if (counts.some((count) => count[word])) rows.push([words.capital(word), ...counts.map((count) => count[word])]);
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    cells.forEach((text, at) => {
      const cell = document.createElement(at && kind !== "head" ? "td" : "th");
      cell.textContent = text;
      if (text) cell.scope = at ? "col" : "row";
      row.append(cell);
    });
    return row;
  };
  const head = document.createElement("thead");
  head.append(line(["", ...sides.map(words.capital)], "head"));
  $("verdicts").replaceChildren(head, ...rows.map((cells) => line(cells, "row")));
  $("verdicts").hidden = false;
}

function row(found) {
  const item = document.createElement("li");
  const [score, line] = [document.createElement("b"), document.createElement("span")];
  score.textContent = words.scoreText(found);
  line.textContent = found.pv.map((m) => words.moveText({ m })).join("  ");
  item.append(score, line);
  return item;
}

function speed(found) {
  return `depth ${found.depth}, ${words.countText(found.nodes ?? 0)} positions, ${words.countText(found.nps ?? 0)} per second`;
}
