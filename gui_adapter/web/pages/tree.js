// A game as a tree of moves: played, taken back, or only tried.

export class Node {
  constructor(parent = null, move = null) {
    this.parent = parent;
    this.m = move?.m ?? null;
    this.x = move?.x ?? null; // captured squares; null while unknown
    this.ply = parent ? parent.ply + 1 : 0;
    this.children = [];
    this.comment = "";
    this.state = null; // what the server says about this position
    this.score = null; // the last parsed `info` line about it
  }

  /** The child for a move, added if missing. */
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

  /** The last node of the main line from here. */
  tip() {
    let node = this;
    while (node.children.length) node = node.children[0];
    return node;
  }

  /** Make the line to this node the main line. */
  promote() {
    for (let node = this; node.parent; node = node.parent) {
      const line = node.parent.children;
      line.splice(line.indexOf(node), 1);
      line.unshift(node);
    }
  }

  /** Store the server's state, and the captures of the moves from here. */
  learn(state) {
    this.state = state;
    const legal = new Map(state.legal.map((move) => [move.m, move.x]));
    for (const child of this.children) child.x ??= legal.get(child.m) ?? null;
  }
}
