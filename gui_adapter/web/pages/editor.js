// Setting up a position: a man is chosen, squares are filled with him; the rules say whether it is one.

import { drawing } from "./board.js";
import { examine } from "./session.js";
import { note, say } from "./view.js";
import { capital, fenOf, rowsOf } from "./words.js";

const $ = (id) => document.getElementById(id);

export class Editor {
  /** `on` = {use(start), leave()}: a FEN that the rules take, or nothing. */
  constructor(board, wire, on) {
    this.board = board;
    this.wire = wire;
    this.on = on;
    this.open = false;
    $("edit-men").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.choose(button.dataset.letter);
    });
    $("edit-clear").addEventListener("click", () => this.put(this.board.ranks, () => "."));
    $("edit-start").addEventListener("click", () => this.show(this.variant.startpos));
    $("edit-side").addEventListener("change", () => this.told());
    $("edit-cancel").addEventListener("click", () => this.leave());
    $("edit-use").addEventListener("click", () => this.use());
  }

  /** Begin with a position. */
  begin(variant, fen) {
    this.open = true;
    this.variant = variant;
    const names = variant.sides.map(capital);
    [...$("edit-side").options].forEach((option, at) => {
      option.textContent = names[at];
    });
    $("edit-side").value = fen.split(" ")[1];
    const men = Object.entries(this.board.pieces).map(([letter, piece]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.letter = letter;
      button.setAttribute("aria-label", piece.label);
      button.title = piece.label;
      button.append(drawing(piece.symbols, `man ${piece.side}`));
      return button;
    });
    const none = document.createElement("button");
    none.type = "button";
    none.dataset.letter = ".";
    none.textContent = "Empty";
    $("edit-men").replaceChildren(...men, none);
    $("edit-card").hidden = false;
    document.body.classList.add("editing");
    this.board.onSquare = (square) => this.fill(square);
    this.board.setLegal([]);
    this.board.mark({ last: [], taken: [], arrows: [] });
    this.choose(Object.keys(this.board.pieces)[0]);
    this.show(fen);
    say("Choose a man, then the squares where he stands.");
    note("");
  }

  choose(letter) {
    this.letter = letter;
    for (const button of $("edit-men").children) button.setAttribute("aria-pressed", String(button.dataset.letter === letter));
  }

  show(fen) {
    this.rows = rowsOf(fen);
    this.told();
  }

  put(ranks, what) {
    this.rows = Array.from({ length: ranks }, (_, at) => [...this.rows[at]].map(what).join(""));
    this.told();
  }

  /** A square gets the chosen man, or loses him if he stands there already. There is one king at most. */
  fill(square) {
    const file = square.charCodeAt(0) - 97;
    const at = this.board.ranks - Number(square.slice(1));
    const letter = this.rows[at][file] === this.letter ? "." : this.letter;
    if (letter === "K") this.rows = this.rows.map((row) => row.replaceAll("K", "."));
    this.rows[at] = this.rows[at].slice(0, file) + letter + this.rows[at].slice(file + 1);
    this.told();
  }

  get fen() {
    return fenOf(this.rows, $("edit-side").value);
  }

  told() {
    this.board.setPosition(this.rows);
    $("edit-fen").textContent = this.fen;
    $("edit-why").textContent = "";
  }

  async use() {
    $("edit-use").disabled = true;
    try {
      const { start, variant } = await examine(this.wire, this.variant.name, this.fen);
      if (this.open && variant === this.variant.name) {
        this.close();
        this.on.use(start);
      }
    } catch (error) {
      $("edit-why").textContent = capital(error.message.replace(/^position[^:]*: /, ""));
    } finally {
      $("edit-use").disabled = false;
    }
  }

  leave() {
    this.close();
    this.on.leave();
  }

  close() {
    if (!this.open) return;
    this.open = false;
    this.board.onSquare = null;
    $("edit-card").hidden = true;
    document.body.classList.remove("editing");
  }
}
