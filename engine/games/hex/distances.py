"""Two-distances: how far cells are from the edges when the opponent may block the best path (kernels).

The two-distance of an empty cell from an edge is 1 next to the edge, and otherwise one more than the second smallest
two-distance among its neighbours. Cells connected by a chain of the side's own stones are neighbours too. (J. van
Rijswijck, Computer Hex: are bees better than fruitflies?, 2000.)
"""

from __future__ import annotations

from ...compile.jit import inline, kernel
from .state import EDGES, KEPT, NEIGHBOURS, X, joined

FAR = 30
"""The two-distance of a cell that cannot be reached in two ways."""


@kernel
def spread(s, slot, side, edge):
    """Write the two-distance of every empty cell from one of a side's edges (0 or 1) to `s.near[slot, side, edge]`."""
    owner = X << side
    bit = 1 + edge
    far_side = EDGES - bit
    end = 0
    for i in range(s.files * s.files):
        sq = int(s.cells[i])
        s.heard[sq] = 0
        s.near[slot, side, edge, sq] = FAR
        if i < s.empty and joined(s, sq, owner) & bit:
            s.near[slot, side, edge, sq] = 1
            s.queue[end] = sq
            end += 1
    begin = 0
    while begin < end:
        source = int(s.queue[begin])
        begin += 1
        steps = int(s.near[slot, side, edge, source]) + 1
        sq = source
        waiting = 0
        while True:
            for d in NEIGHBOURS:
                t = sq + d
                c = int(s.board[t])
                # Own stones connected to this edge are skipped: the cells next to them have distance 1 already.
                if c == 0 or c & ~far_side == owner:
                    # A cell stays FAR until a second neighbour reaches it: that one sets its distance.
                    if s.near[slot, side, edge, t] == FAR and s.heard[t] != source:
                        if s.heard[t]:
                            s.near[slot, side, edge, t] = steps
                            if c == 0:
                                s.queue[end] = t
                                end += 1
                        else:
                            s.heard[t] = source
                        if c:
                            s.relay[waiting] = t
                            waiting += 1
            if waiting == 0:
                break
            waiting -= 1
            sq = int(s.relay[waiting])


@inline
def survey(s):
    """Compute the two-distances of the position unless they are cached; returns their index in `s.near`."""
    slot = s.ply % KEPT
    if s.near_key[slot] != s.key:
        s.near_key[slot] = s.key
        for side in range(2):
            for edge in range(2):
                spread(s, slot, side, edge)
    return slot


@inline
def through(s, slot, side, sq):
    """The length of a side's shortest path through an empty cell: the sum of its two-distances from both edges."""
    return int(s.near[slot, side, 0, sq]) + int(s.near[slot, side, 1, sq])
