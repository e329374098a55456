// The move list: the main line, variations in brackets, and remarks.

import { button, h } from "./dom.js";
import { moveText } from "./words.js";

function number(ply) {
  return `${Math.ceil(ply / 2)}${ply % 2 ? "." : "…"}`;
}

/** The elements of each node, by what they are. They stay while the list is shown anew, as it is with every line of an analysis: a
 *  new button would take the focus from the keyboard, and a click that began on the old one would be lost. */
const elements = new WeakMap();

function element(node, key, make) {
  if (!elements.has(node)) elements.set(node, {});
  return (elements.get(node)[key] ??= make());
}

/** Show the tree below `root` in an element; `choose` is called with the node that is clicked, and is the same for each call. */
export function showMoves(list, root, current, choose) {
  const parts = [];
  const text = (node, key, said, className) => {
    const part = element(node, key, () => h("span", { className }));
    if (part.textContent !== said) part.textContent = said;
    parts.push(part);
  };
  const put = (node, variation) => {
    const move = element(node, "move", () => button("", () => choose(node)));
    const said = moveText(node) + (node.sign ?? "");
    if (move.textContent !== said) move.textContent = said;
    move.className = variation ? "var" : "";
    if (node === current) move.setAttribute("aria-current", "step");
    else move.removeAttribute("aria-current");
    parts.push(move);
    for (const key of ["comment", "remark"]) if (node[key]) text(node, key, node[key], "var");
  };
  const walk = (from, variation) => {
    let node = from;
    let fresh = true;
    while (node.children.length) {
      const [main, ...others] = node.children;
      if (main.ply % 2 || fresh) text(main, "number", number(main.ply), "no");
      put(main, variation);
      fresh = false;
      for (const one of others) {
        text(one, "opens", `( ${number(one.ply)}`, "var");
        put(one, true);
        walk(one, true);
        text(one, "closes", ")", "var");
        fresh = true;
      }
      node = main;
    }
  };
  walk(root, false);
  const wanted = new Set(parts);
  for (const part of [...list.children]) if (!wanted.has(part)) part.remove();
  for (const [at, part] of parts.entries()) if (list.children[at] !== part) list.insertBefore(part, list.children[at] ?? null);
  // Not scrollIntoView, which would also scroll the page and move the board out of sight.
  const at = list.querySelector("[aria-current]");
  if (at) list.scrollTop += at.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}
