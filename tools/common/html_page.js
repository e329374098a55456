
"use strict";
// The games of a report on a board. Everything that people or engines named enters by textContent alone.
(() => {
  const data = JSON.parse(document.getElementById("games-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const CELL = 40;
  const PAGE = 50;
  const WAIT = 700;
  const here = (id) => document.getElementById(id);
  const make = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const draw = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  let game = null;
  let plies = [];
  let boards = [];
  let at = 0;
  let timer = null;
  let shown = PAGE;
  let chosen = [];

  // A ply is MOVE,CHANGES,SCORE: changes are the cell in two digits of base 36 and the letter that stands there now.
  const read = (text) => {
    const [move, changes, score] = text.split(",");
    const list = [];
    for (let i = 0; i < changes.length; i += 3) {
      list.push([parseInt(changes.slice(i, i + 2), 36), changes[i + 2]]);
    }
    return { move, list, score };
  };

  const choose = (index, ply) => {
    stop();
    game = index;
    const one = data.games[index];
    plies = one.plies ? one.plies.split(" ").map(read) : [];
    boards = [Array.from(data.starts[one.start])];
    for (const { list } of plies) {
      const next = boards[boards.length - 1].slice();
      for (const [cell, letter] of list) next[cell] = letter;
      boards.push(next);
    }
    here("caption").textContent =
      `${one.id}: ${data.names[one.a]} – ${data.names[one.d]}, ${data.boards[one.board].name}`;
    here("ending").textContent = one.end;
    const slider = here("slider");
    slider.max = plies.length;
    const moves = here("moves");
    moves.replaceChildren();
    plies.forEach((each, index) => {
      const button = make("button", `${index + 1}. ${each.move}`);
      button.type = "button";
      if (each.score) button.append(" ", make("span", each.score, "score"));
      button.addEventListener("click", () => { stop(); go(index + 1); });
      const item = make("li");
      item.append(button);
      moves.append(item);
    });
    for (const row of here("rows").children) {
      row.setAttribute("aria-selected", row.dataset.game === String(index));
    }
    go(ply === undefined ? 0 : ply);
  };

  const go = (ply) => {
    at = Math.max(0, Math.min(plies.length, ply));
    const one = data.games[game];
    const kind = data.boards[one.board];
    const board = here("board");
    board.setAttribute("viewBox", `0 0 ${kind.width} ${kind.height}`);
    const parts = [draw("use", { href: `#ground-${one.board}`, class: "ground" })];
    const last = at ? plies[at - 1] : null;
    const before = at ? boards[at - 1] : null;
    const now = boards[at];
    const taken = [];
    if (last) {
      const origin = /^[a-s][0-9]+/.exec(last.move);
      for (const [cell, letter] of last.list) {
        const [x, y] = kind.cells[cell];
        const left = letter === ".";
        const mover = left && origin && origin[0] === kind.squares[cell];
        if (left && !mover) taken.push([x, y]);
        else parts.push(draw("rect", { x: x + 3, y: y + 3, rx: 7, width: CELL - 6, height: CELL - 6,
          class: left ? "from" : "to" }));
      }
    }
    now.forEach((letter, cell) => {
      if (letter === ".") return;
      const [x, y] = kind.cells[cell];
      parts.push(draw("use", { href: `#man-${letter.charCodeAt(0)}`, x, y }));
    });
    for (const [x, y] of taken) {
      parts.push(draw("path", { d: `M${x + 12} ${y + 12}l16 16m0 -16l-16 16`, class: "taken" }));
    }
    board.replaceChildren(...parts);
    const said = last ? `${at}. ${last.move}${last.score ? " (" + last.score + ")" : ""}` : "start";
    const end = at === plies.length && one.end ? `: ${one.end}` : "";
    here("said").textContent = `${said}${end}`;
    board.setAttribute("aria-label", `Board after ${at} of ${plies.length} plies`);
    here("slider").value = at;
    for (const [id, off] of [["first", at === 0], ["back", at === 0], ["on", at === plies.length],
      ["last", at === plies.length]]) here(id).disabled = off;
    const buttons = here("moves").querySelectorAll("button");
    buttons.forEach((button, index) => {
      if (index === at - 1) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    const current = buttons[at - 1];
    const list = here("moves");
    if (current) {
      const top = current.offsetTop - list.offsetTop;
      if (top < list.scrollTop || top + current.offsetHeight > list.scrollTop + list.clientHeight) {
        list.scrollTop = top - list.clientHeight / 2;
      }
    } else list.scrollTop = 0;
    try {
      history.replaceState(null, "", `#${one.id}/${at}`);
    } catch {
      // A page shown without an address has no place to remember.
    }
  };

  const stop = () => {
    clearInterval(timer);
    timer = null;
    here("play").textContent = "Play";
  };

  const play = () => {
    if (timer !== null) return stop();
    if (at === plies.length) go(0);
    here("play").textContent = "Pause";
    timer = setInterval(() => {
      go(at + 1);
      if (at === plies.length) stop();
    }, WAIT);
  };

  const step = (by) => { stop(); go(at + by); };
  const neighbour = (by) => {
    const index = chosen.indexOf(game) + by;
    if (chosen[index] !== undefined) choose(chosen[index]);
  };

  const fill = () => {
    const player = here("by-player").value;
    const kind = here("by-board").value;
    const winner = here("by-winner").value;
    chosen = [];
    data.games.forEach((one, index) => {
      if (player && one.a !== Number(player) && one.d !== Number(player)) return;
      if (kind && one.board !== Number(kind)) return;
      if (winner && one.winner !== winner) return;
      chosen.push(index);
    });
    const rows = here("rows");
    rows.replaceChildren();
    for (const index of chosen.slice(0, shown)) {
      const one = data.games[index];
      const row = make("tr");
      row.dataset.game = index;
      row.setAttribute("aria-selected", index === game);
      const button = make("button", one.id);
      button.type = "button";
      button.setAttribute("aria-label", `Show game ${one.id}`);
      button.addEventListener("click", () => {
        choose(index);
        here("player").scrollIntoView({ block: "start" });
      });
      const first = make("td", undefined, "text");
      first.append(button);
      row.append(first, make("td", data.names[one.a], "text"), make("td", data.names[one.d], "text"));
      row.append(make("td", data.boards[one.board].name, "text"), make("td", one.end, "text"));
      row.append(make("td", one.length));
      rows.append(row);
    }
    here("count").textContent = `${chosen.length} of ${data.games.length} games`;
    here("more").hidden = chosen.length <= shown;
  };

  const options = (id, texts) => {
    texts.forEach((text, index) => {
      const option = make("option", text);
      option.value = index;
      here(id).append(option);
    });
    here(id).addEventListener("change", () => { shown = PAGE; fill(); });
  };

  options("by-player", data.names);
  options("by-board", data.boards.map((one) => one.name));
  here("by-winner").addEventListener("change", () => { shown = PAGE; fill(); });
  here("more").addEventListener("click", () => { shown += PAGE; fill(); });
  here("first").addEventListener("click", () => step(-plies.length));
  here("back").addEventListener("click", () => step(-1));
  here("play").addEventListener("click", play);
  here("on").addEventListener("click", () => step(1));
  here("last").addEventListener("click", () => step(plies.length));
  here("slider").addEventListener("input", (event) => { stop(); go(Number(event.target.value)); });
  const keys = {
    ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => step(-plies.length),
    End: () => step(plies.length), n: () => neighbour(1), p: () => neighbour(-1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    // Arrow keys scroll wide tables and work lists and sliders, which have the focus then.
    if (event.target instanceof Element && event.target.closest("select, input, .wide, .chart")) return;
    const action = keys[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  fill();
  here("viewer").hidden = false;
  const asked = /^#(.+)\/([0-9]+)$/.exec(decodeURIComponent(location.hash));
  const found = asked ? data.games.findIndex((one) => one.id === asked[1]) : -1;
  if (found >= 0) choose(found, Number(asked[2]));
  else if (data.games.length) choose(0);
})();
