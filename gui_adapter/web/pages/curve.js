// The curve of a game: the attackers' expected score at each ply. A click goes to that position.

import { svg } from "./board.js";
import { share } from "./words.js";

const HIGH = 100;

/** The attackers' expected score at a node, 0 to 1; null if it was not searched. */
function chance(node) {
  const outcome = node.state?.outcome;
  if (outcome) return { a: 1, d: 0 }[outcome.result] ?? 0.5;
  return node.chance ?? (node.score ? share(node.score) : null);
}

/** Show the main line's curve in an element, hidden while fewer than two values are known. */
export function showCurve(element, root, current, choose) {
  const places = [root, ...root.tip().path()];
  const known = places.map((node, ply) => ({ node, ply, part: chance(node) })).filter(({ part }) => part !== null);
  element.hidden = known.length < 2;
  if (element.hidden) return;
  const wide = Math.max(1, places.length - 1);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${HIGH}`, preserveAspectRatio: "none", role: "img" });
  const last = known.at(-1);
  picture.setAttribute("aria-label", `Chances of the attackers over ${wide} plies, ${Math.round(last.part * 100)} percent at ply ${last.ply}`);
  const points = known.map(({ ply, part }) => `${ply},${HIGH * (1 - part)}`);
  picture.append(
    svg("polygon", { class: "area", points: [`${known[0].ply},${HIGH}`, ...points, `${last.ply},${HIGH}`].join(" ") }),
    svg("line", { class: "middle", x1: 0, x2: wide, y1: HIGH / 2, y2: HIGH / 2 }),
    svg("polyline", { class: "line", points: points.join(" ") }),
  );
  for (const { node, ply } of known) if (node.sign && node.sign !== "!") picture.append(svg("line", { class: "slip", x1: ply, x2: ply, y1: 0, y2: 7 }));
  if (places.includes(current)) picture.append(svg("line", { class: "here", x1: current.ply, x2: current.ply, y1: 0, y2: HIGH }));
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    choose(places[Math.round(((event.clientX - box.left) / box.width) * wide)] ?? current);
  });
  element.replaceChildren(picture);
}
