// Games and positions as text: reading pasted text, writing, and the game that a tab keeps.

import { Game, readFragment } from "./game.js";
import { examine } from "./session.js";
import { named } from "./view.js";
import { rulesOf } from "./words.js";

const KEPT = "hnefi-game";
const PEOPLE = ["human", "human"];

/** A promise of the game in a text; `variant` applies if the text names none. Rejects with a sentence. */
export async function read(wire, offer, variant, text) {
  const trimmed = text.trim();
  if (!trimmed) throw new Error("expected a FEN or a recorded game");
  if (!/[\n[{]/.test(trimmed) && trimmed.includes("/") && !trimmed.includes(",")) return readPosition(wire, offer, variant, trimmed);
  const record = await wire.ask({ t: "import", text, ...rulesOf(variant) });
  const found = record.rules ? await own(wire, offer, record.rules) : offer.variants.find((known) => known.name === record.variant);
  if (!found) throw new Error(`${record.variant}: this page does not offer that variant`);
  const game = new Game(found, PEOPLE, record);
  if (record.result && record.reason) game.result = { result: record.result, reason: record.reason };
  return game;
}

/** A promise of a custom variant, from its rules in one line; adds it to the offer. */
export async function own(wire, offer, words) {
  const { variant, reason } = await wire.ask({ t: "rules", words });
  if (!variant) throw new Error(reason);
  adopt(offer, variant);
  return variant;
}

/** Add a variant to the offer, replacing any of the same name. */
export function adopt(offer, variant) {
  offer.variants = [...offer.variants.filter((known) => known.name !== variant.name), variant];
}

/** Add the custom variant of a fragment, if it has one, to the offer. */
export async function prepared(wire, offer, hash) {
  const words = readFragment(hash)?.words;
  if (words) await own(wire, offer, words);
}

/** The fragment of the game that this tab had before it was reloaded. */
export function keptLink() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)).link;
  } catch {
    return "";
  }
}

async function readPosition(wire, offer, variant, text) {
  const rows = text.replace(/^\//, "").split(" ")[0].replace(/\/$/, "").split("/");
  const fits = rows.length === variant.ranks ? variant : offer.variants.find((known) => known.game === "tafl" && known.ranks === rows.length);
  if (!fits) throw new Error(`${rows.length} rows: expected a board of 5 to 19`);
  const { start } = await examine(wire, fits, text);
  return new Game(fits, PEOPLE, { start });
}

/** A promise of {text, lost}: a game in a format, and what the format cannot store. */
export function write(wire, game, format) {
  const tip = game.live;
  const { result, reason } = game.over ?? { result: "", reason: "" };
  const path = tip.path();
  const captures = path.every((node) => node.x !== null);
  const moves = path.map((node) => node.m + (node.x ?? []).map((square) => `x${square}`).join(""));
  const players = ["a", "d"].map((side) => (game.engineOf(side) ? `hnefi ${named(game, side)}` : named(game, side)));
  return wire.ask({ t: "export", format, ...rulesOf(game.variant), start: game.start ?? "", moves, captures, players, result, reason });
}

/** Why a fragment names nothing known here; empty if it names a game on offer, or is empty itself. */
export function stray(offer, hash) {
  const link = readFragment(hash);
  if (hash.length < 2 || (link && offer.variants.some((known) => known.name === link.variant))) return "";
  return link ? `${link.variant.slice(0, 40)}: this server offers no rules of that name.` : `${hash.slice(0, 40)}: the address names neither a page nor a game.`;
}

/** The game of a fragment; null if it names no variant on offer. */
export function linked(offer, hash, players = PEOPLE, more = {}) {
  const link = readFragment(hash);
  const variant = link && offer.variants.find((known) => known.name === link.variant);
  return variant ? new Game(variant, players, { ...link, ...more }) : null;
}

/** The game that this tab had before it was reloaded. */
export function kept(offer) {
  try {
    const { link, players, ...more } = JSON.parse(sessionStorage.getItem(KEPT));
    return linked(offer, link, players, more);
  } catch {
    return null; // nothing stored, or a browser without storage
  }
}

export function keep(game) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ link: game.fragment(game.live), players: game.players, think: game.think, rated: game.rated, level: game.level }));
  } catch {
    // As above.
  }
}
