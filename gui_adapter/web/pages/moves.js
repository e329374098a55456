// The move list: the main line, variations in brackets, and remarks.

import { button, h } from "./dom.js";
import { moveText } from "./words.js";

const span = (text, className = "no") => h("span", { className }, text);

function number(ply) {
  return `${Math.ceil(ply / 2)}${ply % 2 ? "." : "…"}`;
}

/** Show the tree below `root` in an element; `choose` is called with the node that is clicked. */
export function showMoves(list, root, current, choose) {
  const parts = [];
  const put = (node, variation) => {
    const about = { className: variation ? "var" : "", ...(node === current && { "aria-current": "step" }) };
    parts.push(button(moveText(node) + (node.sign ?? ""), () => choose(node), about));
    for (const text of [node.comment, node.remark]) if (text) parts.push(span(text, "var"));
  };
  const walk = (from, variation) => {
    let node = from;
    let fresh = true;
    while (node.children.length) {
      const [main, ...others] = node.children;
      if (main.ply % 2 || fresh) parts.push(span(number(main.ply)));
      put(main, variation);
      fresh = false;
      for (const one of others) {
        parts.push(span(`( ${number(one.ply)}`, "var"));
        put(one, true);
        walk(one, true);
        parts.push(span(")", "var"));
        fresh = true;
      }
      node = main;
    }
  };
  walk(root, false);
  list.replaceChildren(...parts);
  // Not scrollIntoView, which would also scroll the page and move the board out of sight.
  const at = list.querySelector("[aria-current]");
  if (at) list.scrollTop += at.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}
