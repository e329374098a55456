// A game as a tree of moves: what was played, what was taken back, what was looked at.

export class Node {
  constructor(parent = null, move = null) {
    this.parent = parent;
    this.m = move?.m ?? null;
    this.x = move?.x ?? null; // squares that were captured; null while nobody has said so
    this.ply = parent ? parent.ply + 1 : 0;
    this.children = [];
    this.comment = "";
    this.state = null; // what the server says about this place
    this.score = null; // centipawns for the attackers, of the deepest look
  }

  /** The child by a move, a new one if there is none. */
  play(move) {
    const known = this.children.find((child) => child.m === move.m);
    if (known) {
      known.x ??= move.x ?? null;
      return known;
    }
    const child = new Node(this, move);
    this.children.push(child);
    return child;
  }

  /** The moves from the start to here. */
  moves() {
    return this.path().map((node) => node.m);
  }

  /** The nodes from the first move to here. */
  path() {
    const found = [];
    for (let node = this; node.parent; node = node.parent) found.unshift(node);
    return found;
  }

  /** The end of the main line below. */
  tip() {
    let node = this;
    while (node.children.length) node = node.children[0];
    return node;
  }

  /** This line becomes the main line. */
  promote() {
    for (let node = this; node.parent; node = node.parent) {
      const line = node.parent.children;
      line.splice(line.indexOf(node), 1);
      line.unshift(node);
    }
  }

  /** What the server says; what the moves on from here capture. */
  learn(state) {
    this.state = state;
    const legal = new Map(state.legal.map((move) => [move.m, move.x]));
    for (const child of this.children) child.x ??= legal.get(child.m) ?? null;
  }
}
