// One game: its tree of moves, the current node, the players and the result. It knows neither the rules nor the page.

import { Clock } from "./clock.js";
import { Node } from "./tree.js";

export class Game {
  /** `moves` from `start` (a FEN, null for the variant's own); `comments` by ply. */
  constructor(variant, players, { start = null, moves = [], comments = {}, think = 1000, clock = null, rated = !start && !moves.length, level = null } = {}) {
    this.variant = variant;
    this.players = players; // "human", "level:3" or "player:NAME", one for each side
    this.think = think;
    this.start = start;
    this.result = null; // {result, reason} of a game not ended by the rules
    this.paused = false;
    this.timing = clock;
    this.rated = rated; // whether it counts towards the level `auto`
    this.level = level; // the level that `auto` stands for in this game
    this.clock = clock && new Clock(clock.seconds * 1000, clock.increment * 1000);
    this.root = this.current = this.live = new Node();
    moves.forEach((m, at) => {
      this.live = this.live.play({ m, x: null });
      this.live.comment = comments[at + 1] ?? "";
    });
    this.current = this.live;
  }

  find(moves) {
    let node = this.root;
    for (const m of moves) {
      node = node.children.find((child) => child.m === m);
      if (!node) return null;
    }
    return node;
  }

  get state() {
    return this.current.state;
  }

  get over() {
    return this.live.state?.outcome ?? this.result;
  }

  get atEnd() {
    return this.current === this.live;
  }

  /** Whether the engine's level follows the results of this game's one person. */
  get follows() {
    return this.alone && this.players.includes("level:auto");
  }

  /** The result for that person. */
  get score() {
    const mine = "ad"[this.players.indexOf("human")];
    return { [mine]: "won", [other(mine)]: "lost", draw: "drawn" }[this.over.result];
  }

  get alone() {
    return this.players.filter((player) => player === "human").length === 1;
  }

  engineOf(side) {
    const who = this.players["ad".indexOf(side)];
    return who === "human" ? null : who;
  }

  called(side) {
    return this.variant.sides["ad".indexOf(side)];
  }

  /** Whether a person may move in the current position. */
  get mine() {
    const { state } = this;
    if (!state || state.outcome) return false;
    if (!this.atEnd) return true; // a variation
    return !this.result && (!this.engineOf(state.side) || this.paused);
  }

  /** The engine to move now; null if there is none. */
  get thinker() {
    return this.state && this.atEnd && !this.over && !this.paused ? this.engineOf(this.state.side) : null;
  }

  /** The side that resigns: the person's, or with two people the side to move. */
  get loser() {
    const { side } = this.state;
    return this.engineOf(side) ? other(side) : side;
  }

  /** Play a legal move in the current position; returns the new node. */
  play(move) {
    if (!this.atEnd) this.clock = null; // this line is not the one being timed
    this.clock?.moved(this.state.side);
    this.result = null;
    const child = this.current.play(move);
    child.promote();
    this.live = this.current = child;
    return child;
  }

  /** The last earlier node where a person was to move; null if there is none. */
  before() {
    let node = this.current.parent;
    while (node?.parent && node.state && this.engineOf(node.state.side) && this.players.includes("human")) node = node.parent;
    return node;
  }

  /** The URL fragment with the moves to a node. */
  fragment(node = this.current) {
    const parts = new URLSearchParams({ v: this.variant.name });
    if (this.variant.words) parts.set("rules", this.variant.words);
    if (this.start) parts.set("fen", this.start);
    const moves = node.moves();
    if (moves.length) parts.set("moves", moves.join("."));
    return `#${parts}`;
  }
}

export function other(side) {
  return side === "a" ? "d" : "a";
}

/** Parse a fragment into {variant, words, start, moves}; null if it names no game. */
export function readFragment(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  const variant = parts.get("v");
  if (!variant) return null;
  const moves = (parts.get("moves") ?? "").split(".").filter((move) => /^([a-z]\d+([a-z]\d+)?|swap)$/.test(move));
  return { variant, words: parts.get("rules"), start: parts.get("fen"), moves };
}
