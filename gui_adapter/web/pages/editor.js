// Setting up a position: choose a man, then fill squares with it. The server decides whether the position is valid.

import { drawing } from "./board.js";
import { $, button } from "./dom.js";
import { examine } from "./session.js";
import { note, say } from "./view.js";
import { capital, fenOf, rowsOf } from "./words.js";


/** Buttons for the men and for an empty square; `choose` receives the letter of the one pressed. */
export function palette(pieces, choose) {
  const buttons = [...Object.entries(pieces), [".", { label: "empty" }]].map(([letter, piece]) => {
    const press = () => {
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === made));
      choose(letter);
    };
    const made = button("", press, { title: piece.label, "aria-label": piece.label });
    made.dataset.letter = letter;
    made.append(piece.symbols ? drawing(piece.symbols, `man ${piece.side}`) : "Empty");
    return made;
  });
  return buttons;
}

/** The rows with a man added on a square, or removed if it was there already. There is at most one king. */
export function placed(rows, square, chosen) {
  const file = square.charCodeAt(0) - 97;
  const at = rows.length - Number(square.slice(1));
  const letter = rows[at][file] === chosen ? "." : chosen;
  const others = letter === "K" ? rows.map((row) => row.replaceAll("K", ".")) : [...rows];
  others[at] = others[at].slice(0, file) + letter + others[at].slice(file + 1);
  return others;
}

export class Editor {
  /** `on` = {use(start), leave()}: called with a valid FEN, or when the editor is cancelled. */
  constructor(board, wire, on) {
    this.board = board;
    this.wire = wire;
    this.on = on;
    this.open = false;
    $("edit-clear").addEventListener("click", () => this.put(this.board.ranks, () => "."));
    $("edit-start").addEventListener("click", () => this.show(this.variant.startpos));
    $("edit-side").addEventListener("change", () => this.told());
    $("edit-cancel").addEventListener("click", () => this.leave());
    $("edit-use").addEventListener("click", () => this.use());
  }

  /** Open the editor with a position. */
  begin(variant, fen) {
    this.open = true;
    this.variant = variant;
    const names = variant.sides.map(capital);
    [...$("edit-side").options].forEach((option, at) => {
      option.textContent = names[at];
    });
    $("edit-side").value = fen.split(" ")[1];
    const men = palette(this.board.pieces, (letter) => {
      this.letter = letter;
    });
    $("edit-men").replaceChildren(...men);
    $("edit-card").hidden = false;
    document.body.classList.add("editing");
    this.board.onSquare = (square) => this.fill(square);
    this.board.setLegal([]);
    this.board.mark({ last: [], taken: [], arrows: [] });
    men[0].click();
    this.show(fen);
    say("Choose a man, then click the squares where it stands.");
    note("");
  }

  show(fen) {
    this.rows = rowsOf(fen);
    this.told();
  }

  put(ranks, what) {
    this.rows = Array.from({ length: ranks }, (_, at) => [...this.rows[at]].map(what).join(""));
    this.told();
  }

  fill(square) {
    this.rows = placed(this.rows, square, this.letter);
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
      const { start, variant } = await examine(this.wire, this.variant, this.fen);
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
