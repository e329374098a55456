// One game: the tree of its moves, where one looks, who plays, how it ended. It knows neither rules nor the page.

import { Clock } from "./clock.js";
import { Node } from "./tree.js";

export class Game {
  /** `moves` from `start` (a FEN, null for the usual one); comments by ply. */
  constructor(variant, players, { start = null, moves = [], comments = {}, think = 1000, clock = null, rated = !start && !moves.length, level = null } = {}) {
    this.variant = variant;
    this.players = players; // "human", "level:3", "player:NAME"; of both sides
    this.think = think;
    this.start = start;
    this.result = null; // {result, reason} of a game that the rules have not ended
    this.paused = false;
    this.timing = clock;
    this.rated = rated; // whether it counts for the level `auto`
    this.level = level; // the level that `auto` is here
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

  /** Whether somebody's level follows the results of the one person here. */
  get follows() {
    return this.alone && this.players.includes("level:auto");
  }

  /** How it ended for that person. */
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

  /** Whether a person may move here. */
  get mine() {
    const { state } = this;
    if (!state || state.outcome) return false;
    if (!this.atEnd) return true; // a variation
    return !this.result && (!this.engineOf(state.side) || this.paused);
  }

  /** The engine that has to move now, if one has. */
  get thinker() {
    return this.state && this.atEnd && !this.over && !this.paused ? this.engineOf(this.state.side) : null;
  }

  /** The side that gives up: a person's, whose turn it is where there are two. */
  get loser() {
    const { side } = this.state;
    return this.engineOf(side) ? other(side) : side;
  }

  /** Play a legal move where one looks; the new place. */
  play(move) {
    if (!this.atEnd) this.clock = null; // another line than the one that was timed
    this.clock?.moved(this.state.side);
    this.result = null;
    const child = this.current.play(move);
    child.promote();
    this.live = this.current = child;
    return child;
  }

  /** Where a person was to move last, null where nobody was. */
  before() {
    let node = this.current.parent;
    while (node?.parent && node.state && this.engineOf(node.state.side) && this.players.includes("human")) node = node.parent;
    return node;
  }

  /** The fragment that holds the moves to a place. */
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

/** What a fragment says: {variant, start, moves}, null if it names no game. */
export function readFragment(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  const variant = parts.get("v");
  if (!variant) return null;
  const moves = (parts.get("moves") ?? "").split(".").filter((move) => /^([a-z]\d+([a-z]\d+)?|swap)$/.test(move));
  return { variant, words: parts.get("rules"), start: parts.get("fen"), moves };
}
