// A board of squares with pieces to move. It knows neither the network nor the game: the pieces, the legal moves and the
// names are given to it.
//
//   new Board(element, {files, ranks, slant, special, pieces, onMove, onRefused, onSay})
//
// special: {square: kind}; pieces: {letter: {symbols: [id], side, label}}. While `onSquare` is set, choosing a
// square only calls it with that square.

const SVG = "http://www.w3.org/2000/svg";
const MOVE = /^([a-z]\d+)([a-z]\d+)?$/;
const SLIDE_MS = 180;
const SQUARE = 100 / 0.92; // width of a square in percent of a man's
const HIGH = 0.866; // distance between rows of hexagons, in widths of a hexagon
const SMALL = 30; // pixels: smaller squares need a second tap to confirm a move

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** An SVG element with attributes. */
export function svg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A drawing made of the page's symbols, stacked. */
export function drawing(symbols, className) {
  const picture = svg("svg", { class: className, viewBox: "0 0 40 40", "aria-hidden": "true" });
  for (const id of symbols) picture.append(svg("use", { href: `#${id}` }));
  return picture;
}

/** The squares of a move: [origin, target], with a null origin for a placed stone; null for a word such as `swap`. */
export function squaresOf(move) {
  const found = MOVE.exec(move);
  return found ? (found[2] ? [found[1], found[2]] : [null, found[1]]) : null;
}

export class Board {
  constructor(element, options) {
    this.element = element;
    Object.assign(this, { slant: false, special: {}, onMove() {}, onRefused() {}, onSay() {} }, options);
    this.flipped = false;
    this.onSquare = null;
    this.cells = new Map();
    this.men = new Map();
    this.legal = new Map(); // origin ("" for placing) -> Map(target -> {m, x})
    this.marks = { last: [], taken: [], arrows: [] };
    this.picked = null;
    this.pending = null;
    this.focus = null;
    this.drag = null;
    this.ignoreClick = false;
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.dragged(event));
    element.addEventListener("pointerup", (event) => this.up(event));
    element.addEventListener("pointercancel", () => this.endDrag());
    element.addEventListener("focusin", (event) => this.focused(event));
    this.build();
  }

  /** Replace the board with another. */
  reset(options) {
    Object.assign(this, options);
    this.picked = this.pending = this.focus = null;
    this.men.clear();
    this.legal.clear();
    this.marks = { last: [], taken: [], arrows: [] };
    this.build();
  }

  focusBoard() {
    this.cells.get(this.focus)?.focus({ preventScroll: true });
  }

  flip() {
    this.flipped = !this.flipped;
    const active = this.element.contains(document.activeElement);
    this.build();
    if (active) this.cells.get(this.focus)?.focus();
  }

  build() {
    const { element, files, ranks } = this;
    element.replaceChildren();
    element.className = this.slant ? "board slant" : "board";
    element.setAttribute("role", "grid");
    element.setAttribute("aria-rowcount", ranks);
    element.setAttribute("aria-colcount", files);
    element.style.setProperty("--files", files);
    element.style.setProperty("--ranks", ranks);
    element.style.setProperty("--across", this.slant ? files + (ranks - 1) / 2 : files);
    this.cells.clear();
    const letters = Array.from({ length: files }, (_, at) => String.fromCharCode(97 + at));
    if (this.flipped) letters.reverse();
    this.focus ??= `${letters[0]}${this.flipped ? ranks : 1}`;
    for (let at = 0; at < ranks; at += 1) {
      const rank = this.flipped ? at + 1 : ranks - at;
      const row = document.createElement("div");
      row.setAttribute("role", "row");
      row.className = "rank";
      row.style.setProperty("--row", at);
      for (const letter of letters) row.append(this.cell(`${letter}${rank}`, letter === letters[0], at === ranks - 1));
      element.append(row);
    }
    this.overlay = svg("svg", { class: "arrows", "aria-hidden": "true" });
    element.append(this.overlay);
    for (const square of this.cells.keys()) this.paint(square);
    this.show();
  }

  cell(square, leftmost, lowest) {
    const cell = document.createElement("div");
    cell.setAttribute("role", "gridcell");
    cell.dataset.square = square;
    const kind = this.special[square];
    const odd = (square.charCodeAt(0) + Number(square.slice(1))) % 2;
    cell.ground = `cell ${kind ?? ""}${odd ? " odd" : ""}`; // the classes it always has
    cell.tabIndex = square === this.focus ? 0 : -1;
    if (kind) cell.append(drawing([`ground-${kind}`], "ground"));
    if (leftmost) cell.dataset.rank = square.slice(1);
    if (lowest) cell.dataset.file = square[0];
    this.cells.set(square, cell);
    return cell;
  }

  /** Show a position: rows from the highest rank down, `.` for empty. `moved` = {m, x} is the move that led to it. */
  setPosition(rows, moved = null) {
    const before = this.men;
    this.men = new Map();
    rows.forEach((row, at) =>
      [...row].forEach((letter, file) => {
        if (letter !== ".") this.men.set(`${String.fromCharCode(97 + file)}${this.ranks - at}`, letter);
      }),
    );
    this.picked = this.pending = null;
    for (const square of this.cells.keys())
      if (before.get(square) !== this.men.get(square)) this.paint(square);
    if (moved && !still.matches) this.animate(moved, before);
    this.show();
  }

  /** The legal moves: [{m, x}]; none if nobody may move here. */
  setLegal(moves) {
    this.legal = new Map();
    for (const move of moves) {
      const squares = squaresOf(move.m);
      if (!squares) continue;
      const from = squares[0] ?? "";
      if (!this.legal.has(from)) this.legal.set(from, new Map());
      this.legal.get(from).set(squares[1], move);
    }
    if (this.picked && !this.legal.has(this.picked)) this.picked = null;
    this.pending = null;
    this.show();
  }

  /** Squares of the last move, squares of captured men, arrows [{m, weight}]. */
  mark(marks) {
    Object.assign(this.marks, marks);
    this.show();
  }

  paint(square) {
    const cell = this.cells.get(square);
    cell.querySelector(".man")?.remove();
    const piece = this.pieces[this.men.get(square)];
    if (piece) cell.append(drawing(piece.symbols, `man ${piece.side}`));
  }

  animate(moved, before) {
    const squares = squaresOf(moved.m);
    if (!squares) return;
    const [from, to] = squares;
    const man = this.cells.get(to)?.querySelector(".man");
    if (man && from && !this.dropped) {
      const [[a, b], [x, y]] = [this.centre(from), this.centre(to)];
      const way = `translate(${(a - x) * SQUARE}%, ${(b - y) * SQUARE}%)`;
      man.animate([{ transform: way }, { transform: "none" }], { duration: SLIDE_MS, easing: "ease-out" });
    }
    this.dropped = false;
    for (const square of moved.x ?? []) {
      const piece = this.pieces[before.get(square)];
      if (!piece || this.men.has(square)) continue;
      const ghost = drawing(piece.symbols, `man ghost ${piece.side}`);
      this.cells.get(square)?.append(ghost);
      ghost.animate([{ opacity: 1 }, { opacity: 0, transform: "scale(.4)" }], { duration: SLIDE_MS }).finished.finally(() => ghost.remove());
    }
  }

  /** Update classes, labels and arrows. Writes only what has changed: with 361 squares, writing is what takes time. */
  show() {
    const { marks, picked, pending, drag } = this;
    const targets = this.targets();
    const aims = picked !== null || this.placing();
    const over = pending ?? (drag?.moving ? drag.over : null) ?? this.hovered;
    const victims = targets.get(over)?.x ?? [];
    for (const [square, cell] of this.cells) {
      const target = targets.get(square);
      const classes = [cell.ground];
      const list = (name, so) => so && classes.push(name);
      list("picked", square === picked);
      list("target", target && aims);
      list("takes", target?.x.length);
      list("pending", square === pending);
      list("victim", victims.includes(square));
      list("last", marks.last.includes(square));
      list("taken", marks.taken.includes(square));
      list("movable", this.legal.has(square));
      list("dragging", drag?.moving && drag.square === square);
      const shown = classes.join(" ");
      if (cell.className !== shown) {
        cell.className = shown;
        if (square === picked) cell.setAttribute("aria-selected", "true");
        else cell.removeAttribute("aria-selected");
      }
      const label = this.label(square, targets);
      if (cell.label === label) continue;
      cell.label = label;
      cell.setAttribute("aria-label", label);
    }
    this.draw();
  }

  placing() {
    return this.legal.has("");
  }

  targets() {
    return this.legal.get(this.picked ?? "") ?? new Map();
  }

  label(square, targets) {
    const words = [square];
    const piece = this.pieces[this.men.get(square)];
    if (piece) words.push(piece.label);
    const kind = this.special[square];
    if (kind) words.push(kind);
    if (!piece) words.push("empty");
    const moves = this.legal.get(square)?.size ?? 0;
    if (moves) words.push(moves === 1 ? "1 move" : `${moves} moves`);
    const move = this.picked !== null ? targets.get(square) : null;
    if (move) words.push(move.x.length ? `captures ${move.x.join(", ")}` : "can go here");
    return words.join(", ");
  }

  draw() {
    const { overlay, files, ranks } = this;
    overlay.replaceChildren();
    const across = this.slant ? files + (ranks - 1) / 2 : files;
    overlay.setAttribute("viewBox", `0 0 ${across} ${this.slant ? ranks * HIGH + 0.289 : ranks}`);
    this.marks.arrows.forEach(({ m, weight }, at) => {
      const squares = squaresOf(m);
      if (!squares || !this.cells.has(squares[1])) return;
      const [x, y] = this.centre(squares[1]);
      const paint = { class: `arrow arrow-${Math.min(at, 4)}`, opacity: weight };
      if (!squares[0]) {
        overlay.append(svg("circle", { ...paint, cx: x, cy: y, r: 0.32, fill: "none" }));
        return;
      }
      const [a, b] = this.centre(squares[0]);
      const far = Math.hypot(x - a, y - b) || 1;
      const [u, v] = [(x - a) / far, (y - b) / far];
      const [hx, hy] = [x - u * 0.42, y - v * 0.42];
      overlay.append(svg("line", { ...paint, x1: a + u * 0.3, y1: b + v * 0.3, x2: hx, y2: hy }));
      const points = [[x - u * 0.06, y - v * 0.06], [hx - v * 0.2, hy + u * 0.2], [hx + v * 0.2, hy - u * 0.2]];
      overlay.append(svg("polygon", { ...paint, points: points.map((point) => point.join(",")).join(" ") }));
    });
  }

  centre(square) {
    const file = square.charCodeAt(0) - 97;
    const rank = Number(square.slice(1)) - 1;
    const column = this.flipped ? this.files - 1 - file : file;
    const row = this.flipped ? rank : this.ranks - 1 - rank;
    return this.slant ? [column + 0.5 + row / 2, row * HIGH + 0.577] : [column + 0.5, row + 0.5];
  }

  // Choosing

  pick(square) {
    this.picked = square;
    this.pending = null;
    this.show();
    const count = this.legal.get(square)?.size ?? 0;
    if (square) this.onSay(`${this.label(square, new Map())} picked up, ${count} ${count === 1 ? "square" : "squares"} to go to`);
  }

  choose(square, finger = false) {
    if (this.onSquare) {
      this.onSquare(square);
      return;
    }
    const move = this.targets().get(square);
    if (move && (this.picked !== null || this.placing())) {
      const size = this.cells.get(square).getBoundingClientRect().width;
      if (finger && size < SMALL && this.pending !== square) {
        this.pending = square;
        this.show();
        this.onSay(`${square}: tap once more`);
        return;
      }
      this.picked = this.pending = null;
      this.onMove(move.m);
    } else if (square === this.picked) this.pick(null);
    else if (this.legal.has(square) && square !== "") this.pick(square);
    else if (this.picked !== null) {
      const from = this.picked;
      this.pick(null);
      this.onRefused(`${from}${square}`, from, square);
    } else this.onRefused(null, null, square);
  }

  squareAt(event) {
    const found = document.elementFromPoint(event.clientX, event.clientY)?.closest?.(".cell");
    return found && this.element.contains(found) ? found.dataset.square : null;
  }

  down(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    const square = this.squareAt(event);
    if (!square) return;
    this.setFocus(square);
    this.drag = { square, x: event.clientX, y: event.clientY, moving: false, finger: event.pointerType === "touch", over: null };
    if (this.legal.has(square)) event.target.setPointerCapture?.(event.pointerId);
  }

  dragged(event) {
    const { drag } = this;
    if (!drag) {
      const square = event.pointerType === "mouse" ? this.squareAt(event) : null;
      if (square !== this.hovered && (this.picked !== null || this.hovered)) {
        this.hovered = square;
        this.show();
      }
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moving && Math.hypot(dx, dy) > 7 && this.legal.has(drag.square)) {
      drag.moving = true;
      this.pick(drag.square);
    }
    if (!drag.moving) return;
    const man = this.cells.get(drag.square).querySelector(".man");
    if (man) man.style.transform = `translate(${dx}px, ${dy}px)`;
    const over = this.squareAt(event);
    if (over !== drag.over) {
      drag.over = over;
      this.show();
    }
  }

  up(event) {
    const { drag } = this;
    if (!drag) return;
    const square = this.squareAt(event);
    this.endDrag();
    if (!drag.moving) {
      if (square === drag.square) this.choose(square, drag.finger);
    } else if (square && square !== drag.square) {
      this.dropped = true; // it was dragged there: do not animate it
      this.choose(square);
    } else this.pick(null);
  }

  endDrag() {
    if (!this.drag) return;
    const man = this.cells.get(this.drag.square)?.querySelector(".man");
    if (man) man.style.transform = "";
    this.drag = null;
    this.show();
  }

  // Keys

  focused(event) {
    const square = event.target.dataset?.square;
    if (square && square !== this.focus) this.setFocus(square, false);
  }

  setFocus(square, move = true) {
    const before = this.cells.get(this.focus);
    if (before) before.tabIndex = -1;
    this.focus = square;
    const cell = this.cells.get(square);
    cell.tabIndex = 0;
    if (move) cell.focus({ preventScroll: true });
  }

  key(event) {
    if (event.altKey || event.metaKey) return;
    const file = this.focus.charCodeAt(0) - 97;
    const rank = Number(this.focus.slice(1));
    const turn = this.flipped ? -1 : 1;
    const steps = { ArrowLeft: [-turn, 0], ArrowRight: [turn, 0], ArrowUp: [0, turn], ArrowDown: [0, -turn] };
    let to = null;
    if (event.key in steps && !event.ctrlKey) to = [file + steps[event.key][0], rank + steps[event.key][1]];
    else if (event.key === "Home") to = [this.flipped ? this.files - 1 : 0, rank];
    else if (event.key === "End") to = [this.flipped ? 0 : this.files - 1, rank];
    else if (event.key === "Enter" || event.key === " ") this.choose(this.focus);
    else if (event.key === "Escape" && this.picked !== null) this.pick(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    const square = `${String.fromCharCode(97 + to[0])}${to[1]}`;
    if (this.cells.has(square)) this.setFocus(square);
  }
}
