// A game on the page: players, side to move, clocks, enabled buttons, rules.

import { $, h } from "./dom.js";
import { showMoves } from "./moves.js";
import * as words from "./words.js";

const LOW_MS = 20000;

export function say(text) {
  if ($("status").textContent !== text) $("status").textContent = text;
}

export function note(text) {
  $("note").textContent = text;
}

/** Show why a request failed. */
export function failed(error) {
  note(words.capital(error.message));
}

/** Share the address: copy it to the clipboard if the browser allows. */
export async function passOn(what) {
  try {
    await navigator.clipboard.writeText(location.href);
    note(`The link to ${what} is on the clipboard and in the address bar.`);
  } catch {
    note(`The link to ${what} is in the address bar.`);
  }
}

/** Announce to screen readers only. */
export function speak(text) {
  $("live").textContent = text;
}

function seats(turned) {
  return turned ? [["top", "a"], ["bottom", "d"]] : [["top", "d"], ["bottom", "a"]];
}

export function named(game, side) {
  const who = game.engineOf(side);
  if (!who) return game.alone ? "you" : "a person";
  const [kind, name] = who.split(/:(.*)/);
  if (kind !== "level") return name;
  return name === "auto" && game.level !== null ? `engine, level ${game.level} (auto)` : `engine, level ${name}`;
}

export function showClocks(game, turned) {
  for (const [where, side] of seats(turned)) {
    const face = $(`seat-${where}`).querySelector(".clock");
    face.textContent = game.clock ? words.clockText(game.clock.leftOf(side)) : "";
    face.classList.toggle("low", Boolean(game.clock) && game.clock.leftOf(side) < LOW_MS);
  }
}

export function showGame(game, turned, choose) {
  const { variant, current, state } = game;
  $("title").textContent = variant.name;
  document.title = `${variant.name} – hnefi`;
  for (const [where, side] of seats(turned)) {
    const seat = $(`seat-${where}`);
    seat.querySelector(".who").textContent = `${words.capital(game.called(side))}: ${named(game, side)}`;
    const taken = state?.captures?.["ad".indexOf(side)] ?? 0;
    seat.querySelector(".taken").textContent = taken ? `${taken} captured` : "";
    seat.classList.toggle("turn", state?.side === side && !state.outcome && !(game.atEnd && game.result));
  }
  showClocks(game, turned);
  say(sentence(game));
  $("first").disabled = $("back").disabled = $("undo").disabled = !current.parent;
  $("on").disabled = $("last").disabled = !current.children.length;
  $("resign").disabled = Boolean(game.over) || !game.atEnd || !game.players.includes("human");
  $("hint").disabled = !game.mine;
  $("swap").hidden = !state?.legal.some((move) => move.m === "swap") || !game.mine;
  $("pause").hidden = game.players.includes("human") && !game.paused;
  $("pause").textContent = game.paused ? "Resume" : "Pause";
  $("over").hidden = !game.over || !game.atEnd;
  $("other").hidden = !game.alone;
  $("aim").hidden = Boolean(current.parent) || current.children.length > 0 || !game.alone;
  $("aim").firstElementChild.textContent = variant.aim.join(" ") || variant.description;
  showMoves($("moves"), game.root, current, choose);
}

function sentence(game) {
  const { state } = game;
  if (!state) return "The engine is starting …";
  if (state.outcome) return words.ending(state.outcome, game.variant.sides);
  if (game.result && game.atEnd) return words.ending(game.result, game.variant.sides);
  const name = words.capital(game.called(state.side));
  if (!game.atEnd) return `${name} to move here. Your move starts a variation.`;
  if (game.engineOf(state.side)) return game.paused ? `${name} to move. Paused.` : `${name} think …`;
  return game.alone ? `Your move: ${game.called(state.side)}.` : `${name} to move.`;
}

export function showRules(variant) {
  const lines = variant.rules.length ? variant.rules : [variant.description];
  $("rules").replaceChildren(...lines.map((text) => h("li", {}, text)));
  $("source").textContent = variant.source ? `Source: ${variant.source}` : "";
}
