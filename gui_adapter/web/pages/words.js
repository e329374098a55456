// Converts between the protocol's text and text for people.

const NAMES = { t: "attacker", c: "commander", n: "knight", m: "mercenary", g: "guard", k: "king" };

/** The fields of a frame that identify a variant's rules. */
export function rulesOf({ name, words }) {
  return words ? { variant: name, rules: words } : { variant: name };
}

/** The symbols and names of a game's pieces, by FEN letter. */
export function piecesOf(variant) {
  const found = {};
  variant.letters.forEach((letters, at) => {
    const side = "ad"[at];
    for (const letter of letters) {
      if (variant.game !== "tafl") {
        const symbol = variant.game === "hex" ? `stone-${side}` : `pawn-${side}`;
        const colour = variant.sides[at] === "white" ? "d" : variant.sides[at] === "black" ? "a" : side; // light, dark
        found[letter] = { symbols: [symbol], side: colour, label: variant.game === "hex" ? `stone ${letter}` : `${variant.sides[at]} pawn` };
      } else if (letter === "K") found[letter] = { symbols: ["king"], side: "king", label: "king" };
      else {
        const kind = letter.toLowerCase();
        const label = kind === "t" ? ["attacker", "defender"][at] : `${["attacking", "defending"][at]} ${NAMES[kind]}`;
        found[letter] = { symbols: kind === "t" ? [`man-${side}`] : [`man-${side}`, `sign-${kind}`], side, label };
      }
    }
  });
  return found;
}

/** The rows of a FEN, with `.` for each empty square. */
export function rowsOf(fen) {
  return fen.split(" ")[0].split("/").map((row) => row.replace(/\d+/g, (count) => ".".repeat(Number(count))));
}

/** The FEN of rows at the start of a game, `side` to move. */
export function fenOf(rows, side) {
  return `${rows.map((row) => row.replace(/\.+/g, (empty) => empty.length)).join("/")} ${side} 0 1`;
}

/** A move for people: `d1–d3×e3`. */
export function moveText(node) {
  const found = /^([a-z]\d+)([a-z]\d+)$/.exec(node.m);
  const move = found ? `${found[1]}–${found[2]}` : node.m;
  return node.x?.length ? `${move}×${node.x.join("×")}` : move;
}

/** A move for a screen reader: `d1 to d3, captures e3`. */
export function spoken(node) {
  const found = /^([a-z]\d+)([a-z]\d+)$/.exec(node.m);
  const move = found ? `${found[1]} to ${found[2]}` : node.m;
  return node.x?.length ? `${move}, captures ${node.x.join(", ")}` : move;
}

/** Download a text as a file. */
export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/** How a game ended, as a sentence. */
export function ending(outcome, sides) {
  const reason = outcome.reason.replaceAll("_", " ");
  if (outcome.result === "draw") return `Draw: ${reason}.`;
  const name = sides["ad".indexOf(outcome.result)];
  return `${capital(name)} win: ${reason}.`;
}

/** A parsed `info` line, its score from the attackers' view in centipawns; null for any other line. */
export function report(line, side) {
  const words = line.split(" ");
  if (words[0] !== "info" || words[1] === "string") return null;
  const number = (name) => {
    const at = words.indexOf(name);
    return at > 0 ? Number(words[at + 1]) : null;
  };
  const at = words.indexOf("score");
  if (at < 0) return null;
  const turn = side === "a" ? 1 : -1;
  const value = Number(words[at + 2]) * turn;
  const mate = words[at + 1] === "mate";
  const pv = words.indexOf("pv");
  return {
    line: number("multipv") ?? 1,
    depth: number("depth"),
    nodes: number("nodes"),
    nps: number("nps"),
    mate: mate ? value : null,
    won: mate && Number(words[at + 2]) === 0 ? (side === "a" ? -1 : 1) : Math.sign(value),
    cp: mate ? null : value,
    pv: pv > 0 ? words.slice(pv + 1) : [],
  };
}

/** The attackers' expected score, 0 to 1: 100 centipawns are 64 %. */
export function share(found) {
  if (found.mate !== null) return found.won > 0 ? 1 : 0;
  return 1 / (1 + 10 ** (-found.cp / 400));
}

/** A score as text; plus favours the attackers. */
export function scoreText(found) {
  if (found.mate !== null) return `${found.won > 0 ? "+" : "−"}win in ${Math.abs(found.mate)}`;
  const sign = found.cp > 0 ? "+" : found.cp < 0 ? "−" : "";
  return `${sign}${(Math.abs(found.cp) / 100).toFixed(2)}`;
}

export function countText(count) {
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} M`;
  return count >= 1e3 ? `${Math.round(count / 1e3)} k` : `${count}`;
}

export function clockText(ms) {
  const seconds = Math.max(0, ms) / 1000;
  const minutes = Math.floor(seconds / 60);
  const rest = seconds < 20 ? (seconds % 60).toFixed(1).padStart(4, "0") : String(Math.floor(seconds % 60)).padStart(2, "0");
  return `${minutes}:${rest}`;
}
