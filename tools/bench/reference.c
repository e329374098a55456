/* The work of the engine's kernels once more, in C: what `hnefi bench speed` measures them against.
 *
 * The same algorithms on the same data: a padded mailbox, piece lists with back-pointers, an incremental key, stacks
 * for undoing, and rules that are tables in the state, not code. A difference of speed is then one of compilers.
 *
 * `layout.h` is written by tools/bench/speed.py from the record types of the kernels (engine/games/tafl/state.py,
 * engine/search/alphabeta.py, engine/evaluators/loaded.py): the types State, Search and Weights. The files named on
 * the command line are such records, so both programs start from the very same bytes. What the rules mean is said
 * there, beside the kernels; names are the same here.
 *
 *     bench_reference STATE perft DEPTH TIMES
 *     bench_reference STATE playouts GAMES SEED MOST_PLIES
 *     bench_reference STATE search DEPTH SEARCH WEIGHTS
 *
 * Prints lines of a word and numbers; the last is `seconds CPU_TIME`, without the start of the process.
 * Rules of which the measured variants make no use are missing; a state that needs them is refused.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "layout.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

enum { STRIDE = 21, UP = STRIDE, RIGHT = 1, KING = 14, WALL = 15, THRONE = 1, CORNER = 2 };
enum { MERCENARIES = 1 << 4 | 1 << 12, COMMANDERS = 1 << 2 | 1 << 3 | 1 << 10 | 1 << 11 };
enum { GUARDS = 1 << 5 | 1 << 13, SOLDIERS_OF_ATTACK = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 };
enum { KING_CAPTURED = 1, KING_ESCAPED, EXIT_FORT, SURROUNDED, ALL_CAPTURED };
enum { NO_LEGAL_MOVE = 7, REPETITION = 8, MATERIAL = 10, QUIET_LIMIT = 11, MOVE_LIMIT = 12 };
enum { ATTACKERS_WIN = 1 << 8, DEFENDERS_WIN = 2 << 8, DRAW = 3 << 8 };

static const int DIRECTIONS[4] = {UP, RIGHT, -UP, -RIGHT};
static const int ROUND[8] = {UP, UP + RIGHT, RIGHT, RIGHT - UP, -UP, -UP - RIGHT, -RIGHT, UP - RIGHT};

static inline int least(int a, int b) { return a < b ? a : b; }
static inline int most_of(int a, int b) { return a > b ? a : b; }

static inline int piece_on(const State *s, int sq) { return s->board[sq] & 15; }
static inline int terrain_of(const State *s, int sq) { return s->board[sq] >> 4 & 7; }
static inline bool is_attacker(const State *s, int sq) { return piece_on(s, sq) - 1u < 5u; }

/* ---- Where pieces may go ------------------------------------------------------------------------------------- */

static inline bool may_step(const State *s, int o, int t, int bit)
{
    return s->region[t] == s->region[o] || (s->enter[t] & bit);
}

/* All slides of the piece on o. A cell of 0 is free for everybody: the common loop reads nothing else. */
static inline int slides(State *s, int o, int top)
{
    int bit = 1 << piece_on(s, o);
    for (int k = 0; k < 4; k++) {
        int d = DIRECTIONS[k];
        for (int t = o + d;; t += d) {
            int c = s->board[t];
            if (c == 0) {
                s->moves[top++] = o | t << 9;
                continue;
            }
            if ((c & 15) || !may_step(s, o, t, bit))
                break;
            if (s->stop[t] & bit)
                s->moves[top++] = o | t << 9;
            if (!(s->pass_[t] & bit))
                break;
        }
    }
    return top;
}

/* As slides, for rules by which some piece goes only so far. */
static int slides_limited(State *s, int o, int top)
{
    int p = piece_on(s, o), bit = 1 << p;
    for (int k = 0; k < 4; k++)
        for (int i = 1; i <= s->reach[p]; i++) {
            int t = o + i * DIRECTIONS[k], c = s->board[t];
            if ((c & 15) || (c && !may_step(s, o, t, bit)))
                break;
            if (c == 0 || (s->stop[t] & bit))
                s->moves[top++] = o | t << 9;
            if (c && !(s->pass_[t] & bit))
                break;
        }
    return top;
}

static int piece_moves(State *s, int o, int top)
{
    return s->limited ? slides_limited(s, o, top) : slides(s, o, top);
}

static int generate_pseudo_legal(State *s, int top)
{
    const uint16_t *pieces = s->pieces[s->side];
    int n = (int)s->count[s->side];
    if (s->limited) {
        for (int i = 0; i < n; i++)
            top = slides_limited(s, pieces[i], top);
        return top;
    }
    for (int i = 0; i < n; i++)
        top = slides(s, pieces[i], top);
    return top;
}

/* Whether the piece on o can walk to t, a different square of the board. */
static bool can_reach(const State *s, int o, int t)
{
    int c = s->board[t];
    if (c & 15)
        return false;
    int p = piece_on(s, o), bit = 1 << p, span = t - o, d, steps;
    if (o / STRIDE == t / STRIDE) {
        d = span > 0 ? RIGHT : -RIGHT;
        steps = span * d;
    } else if (o % STRIDE == t % STRIDE) {
        d = span > 0 ? UP : -UP;
        steps = span / d;
    } else {
        return false;
    }
    if (steps > s->reach[p])
        return false;
    for (int q = o + d; q != t; q += d) {
        int on = s->board[q];
        if (on && ((on & 15) || !may_step(s, o, q, bit) || !(s->pass_[q] & bit)))
            return false;
    }
    return c == 0 || (may_step(s, o, t, bit) && (s->stop[t] & bit));
}

static bool has_pseudo_legal_move(State *s)
{
    enum { SCRATCH = LENGTH(s->moves) - 512 };
    for (int i = 0; i < s->count[s->side]; i++) {
        int o = s->pieces[s->side][i];
        for (int k = 0; k < 4; k++) {
            int c = s->board[o + DIRECTIONS[k]];
            if (c == 0)
                return true;
            if ((c & 15) == 0 && piece_moves(s, o, SCRATCH) > SCRATCH)
                return true;
        }
    }
    return false;
}

/* ---- Ends that need a look at the whole board ---------------------------------------------------------------- */

/* Whether a flood from start over unmarked squares without attackers reaches an edge square. */
static bool flood_reaches_edge(State *s, int start)
{
    int64_t stamp = s->stamp;
    int n = 1;
    s->flood[0] = (uint16_t)start;
    s->mark[start] = stamp;
    while (n) {
        int q = s->flood[--n];
        if (s->edge[q])
            return true;
        for (int k = 0; k < 4; k++) {
            int x = q + DIRECTIONS[k];
            if (s->mark[x] != stamp && !is_attacker(s, x)) {
                s->mark[x] = stamp;
                s->flood[n++] = (uint16_t)x;
            }
        }
    }
    return false;
}

/* Whether a straight line from start to the edge is free of attackers. */
static inline bool has_line_to_edge(const State *s, int start)
{
    for (int k = 0; k < 4; k++)
        for (int q = start; !is_attacker(s, q); q += DIRECTIONS[k])
            if (s->edge[q])
                return true;
    return false;
}

static bool is_surrounded(State *s)
{
    int n = (int)s->count[1];
    if (s->encirclement == 2) {
        if (s->king == 0 || has_line_to_edge(s, (int)s->king))
            return false;
        s->stamp++;
        if (flood_reaches_edge(s, (int)s->king))
            return false;
        for (int i = 0; i < n; i++)
            if (s->mark[s->pieces[1][i]] != s->stamp)
                return false;
        return true;
    }
    for (int i = 0; i < n; i++)
        if (has_line_to_edge(s, s->pieces[1][i]))
            return false;
    s->stamp++;
    for (int i = 0; i < n; i++) {
        int q = s->pieces[1][i];
        if (s->mark[q] != s->stamp && flood_reaches_edge(s, q))
            return false;
    }
    return n > 0;
}

/* Whether the attacker that arrived at t has closed an encirclement: only where others stand on both sides of him. */
static bool surrounded(State *s, int t, int captured)
{
    if (captured == 0) {
        int near = 0;
        for (int k = 0; k < 8; k++)
            near += is_attacker(s, t + ROUND[k]);
        if (near < 2)
            return false;
    }
    return is_surrounded(s);
}

static inline bool is_open(const State *s, int x, int p, int64_t stamp)
{
    int c = s->board[x];
    if ((c & 15) == WALL)
        return false;
    if (s->mark[x] != stamp && s->mark[x] != stamp + 1)
        return true;
    return (c & 15) == 0 && (s->hostile[c] >> p & 1);
}

/* The king at the edge inside walls that no attackers could ever open. Men of the walls carry `stamp`, the squares
 * inside `stamp + 1`. */
static bool fort_holds(State *s)
{
    enum { SCRATCH = LENGTH(s->moves) - 512 };
    int king = (int)s->king, top = 1, done = 0;
    int64_t stamp = s->stamp + 1, inside = stamp + 1;
    s->stamp += 2;
    s->flood[0] = (uint16_t)king;
    s->mark[king] = inside;
    while (done < top) {
        int q = s->flood[done++];
        for (int k = 0; k < 4; k++) {
            int x = q + DIRECTIONS[k], c = piece_on(s, x);
            if (c == 0) {
                if (s->mark[x] != inside) {
                    s->mark[x] = inside;
                    s->flood[top++] = (uint16_t)x;
                }
            } else if (c < 6) {
                return false;
            }
        }
    }
    if (piece_moves(s, king, SCRATCH) == SCRATCH)
        return false;
    int n = (int)s->count[1];
    for (int i = 0; i < n; i++)
        if (s->pieces[1][i] != king)
            s->mark[s->pieces[1][i]] = stamp;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < n; i++) {
            int sq = s->pieces[1][i], p = piece_on(s, sq);
            if (p == KING || (GUARDS >> p & 1) || s->mark[sq] != stamp)
                continue;
            if ((is_open(s, sq + RIGHT, p, stamp) && is_open(s, sq - RIGHT, p, stamp)) ||
                (is_open(s, sq + UP, p, stamp) && is_open(s, sq - UP, p, stamp))) {
                s->mark[sq] = 0;
                changed = true;
            }
        }
    }
    for (int i = 0; i < done; i++)
        for (int k = 0; k < 4; k++) {
            int x = s->flood[i] + DIRECTIONS[k], p = piece_on(s, x);
            if (9 <= p && p <= 13 && s->mark[x] != stamp)
                return false;
        }
    return true;
}

/* ---- Making a move and taking it back ------------------------------------------------------------------------ */

static inline bool helps_take(const State *s, int sq, int q) { return s->hostile[s->board[sq]] >> q & 1; }

static inline int list_remove(State *s, int sq, int q)
{
    int side = q >> 3, place = s->slot[sq], n = (int)--s->count[side];
    uint16_t last = s->pieces[side][n];
    s->pieces[side][place] = last;
    s->slot[last] = (uint16_t)place;
    s->slot[sq] = 0;
    return place;
}

static inline void list_insert(State *s, int sq, int q, int place)
{
    int side = q >> 3, n = (int)s->count[side]++;
    uint16_t moved = s->pieces[side][place];
    s->pieces[side][n] = moved;
    s->slot[moved] = (uint16_t)n;
    s->pieces[side][place] = (uint16_t)sq;
    s->slot[sq] = (uint16_t)place;
}

/* Remove a man, or turn a mercenary's coat, and remember it. */
static inline void remove_piece(State *s, int sq)
{
    int c = s->board[sq], q = c & 15, place = list_remove(s, sq, q);
    s->key ^= s->zobrist[q][sq];
    s->caught[s->caught_top++] = (uint32_t)(sq | q << 9 | place << 13);
    if (MERCENARIES >> q & 1) {
        int turned = q ^ 8, n = (int)s->count[turned >> 3]++;
        s->board[sq] = (uint16_t)(c ^ 8);
        s->key ^= s->zobrist[turned][sq];
        s->pieces[turned >> 3][n] = (uint16_t)sq;
        s->slot[sq] = (uint16_t)n;
    } else {
        s->board[sq] = (uint16_t)(c ^ q);
    }
}

static inline void restore_piece(State *s)
{
    int entry = (int)s->caught[--s->caught_top], sq = entry & 511, q = entry >> 9 & 15;
    if (MERCENARIES >> q & 1)
        s->count[(q ^ 8) >> 3]--;
    s->board[sq] = (uint16_t)((s->board[sq] & ~15) | q);
    list_insert(s, sq, q, entry >> 13);
}

static inline int add_once(State *s, int n, int sq)
{
    for (int i = 0; i < n; i++)
        if (s->flood[i] == sq)
            return n;
    s->flood[n] = (uint16_t)sq;
    return n + 1;
}

static inline bool holds_wall(const State *s, int sq, int side)
{
    int p = piece_on(s, sq);
    return p != 0 && p != WALL && p >> 3 == side && (s->passive_captors >> p & 1);
}

/* The shieldwall row that begins behind `end` in direction d along the edge. */
static int row_victims(State *s, int end, int d, int inward, int side, int n)
{
    int x = end + d, length = 0;
    for (;; x += d, length++) {
        int p = piece_on(s, x);
        if (p == 0 || p == WALL || p >> 3 == side || piece_on(s, x + d) == WALL)
            break;
        if (!holds_wall(s, x + inward, side))
            break;
    }
    if (length < 2)
        return n;
    bool closed = holds_wall(s, x, side);
    if (!closed && s->shieldwall == 2)
        closed = piece_on(s, x) == 0 && terrain_of(s, x) == CORNER;
    if (!closed)
        return n;
    for (int i = 1; i <= length; i++) {
        int v = end + i * d, p = piece_on(s, v);
        if (p != KING && !(GUARDS >> p & 1))
            n = add_once(s, n, v);
    }
    return n;
}

static int wall_victims(State *s, int t, int n)
{
    int p = piece_on(s, t), side = p >> 3;
    if (!(s->active_captors >> p & 1))
        return n;
    for (int k = 0; k < 4; k++) {
        int inward = DIRECTIONS[k], d = DIRECTIONS[(k + 1) & 3];
        if (piece_on(s, t - inward) == WALL) {
            n = row_victims(s, t, d, inward, side, n);
            n = row_victims(s, t, -d, inward, side, n);
        }
    }
    return n;
}

static int linnaean_victim(State *s, int t, int n)
{
    for (int k = 0; k < 4; k++) {
        int d = DIRECTIONS[k], q = piece_on(s, t + d), king = t + 2 * d, others = 0;
        if (q < 9 || q > 12 || king != s->king || terrain_of(s, king) != THRONE)
            continue;
        for (int j = 0; j < 4; j++)
            others += DIRECTIONS[j] != -d && (SOLDIERS_OF_ATTACK >> piece_on(s, king + DIRECTIONS[j]) & 1);
        if (others == 3)
            n = add_once(s, n, t + d);
    }
    return n;
}

/* Whether the attacker p that arrived at t, a neighbour of the king, has taken him. */
static bool king_falls(const State *s, int t, int p)
{
    int king = (int)s->king, sides = s->king_sides[king];
    if (sides == 2)
        return helps_take(s, 2 * king - t, KING);
    if (sides == 0)
        return false;
    if (s->commander_pair && terrain_of(s, king) != THRONE && (COMMANDERS >> p & 1)) {
        int far = s->board[2 * king - t], q = far & 15;
        if (q == 2 || q == 3 || ((far >> 4 & 7) == CORNER && q != WALL && (s->hostile[far & ~15] >> KING & 1)))
            return true;
    }
    for (int k = 0; k < 4; k++) {
        int c = s->board[king + DIRECTIONS[k]];
        if ((c & 15) == WALL) {
            if (s->king_on_edge == 0 || (s->king_on_edge == 2 && s->count[1] > 1))
                return false;
        } else if (!(s->hostile[c] >> KING & 1)) {
            return false;
        }
    }
    return true;
}

/* Whether the king and exactly one defender beside him are shut in, touched by the mover. */
static bool pair_falls(const State *s, int t)
{
    int king = (int)s->king, mate = 0;
    bool touched = false;
    if (s->king_sides[king] == 0)
        return false;
    for (int k = 0; k < 4; k++) {
        int q = piece_on(s, king + DIRECTIONS[k]);
        if (9 <= q && q <= 13) {
            if (mate)
                return false;
            mate = king + DIRECTIONS[k];
        }
    }
    if (mate == 0)
        return false;
    for (int i = 0; i < 2; i++) {
        int member = i ? mate : king, other = i ? king : mate, p = piece_on(s, member);
        for (int k = 0; k < 4; k++) {
            int x = member + DIRECTIONS[k], c = s->board[x], q = c & 15;
            if (x == other)
                continue;
            touched |= x == t;
            if (9 <= q && q <= 14)
                return false;
            if (q == WALL ? s->king_on_edge != 1 : !(s->hostile[c] >> p & 1))
                return false;
        }
    }
    return touched;
}

/* Lift and place the piece, find every victim on that board, remove them; whether the king falls. */
static inline bool apply(State *s, int o, int t)
{
    int c = s->board[o], p = c & 15, side = p >> 3, n = 0;
    s->board[o] = (uint16_t)(c ^ p);
    s->board[t] |= (uint16_t)p;
    s->slot[t] = s->slot[o];
    s->slot[o] = 0;
    s->pieces[side][s->slot[t]] = (uint16_t)t;
    s->key ^= s->zobrist[p][o] ^ s->zobrist[p][t];
    if (p == KING)
        s->king = t;
    if (s->uncommon && s->linnaean && (SOLDIERS_OF_ATTACK >> p & 1))
        n = linnaean_victim(s, t, n);
    if (s->active_captors >> p & 1) {
        int victims = (int)s->victims[side];
        for (int k = 0; k < 4; k++) {
            int v = t + DIRECTIONS[k], q = piece_on(s, v);
            if ((victims >> q & 1) && helps_take(s, v + DIRECTIONS[k], q)) {
                if (s->uncommon)
                    n = add_once(s, n, v);
                else
                    s->flood[n++] = (uint16_t)v;
            }
        }
    }
    if (s->shieldwall && s->edge[t])
        n = wall_victims(s, t, n);
    for (int i = 0; i < n; i++)
        remove_piece(s, s->flood[i]);
    if (side == 0 && s->king && p != 5) {
        int away = abs((int)s->king - t);
        if ((away == 1 || away == STRIDE) && king_falls(s, t, p))
            return true;
        if (s->king_with_one && pair_falls(s, t))
            return true;
    }
    return false;
}

/* Play a legal move. Sets s->outcome if it decides the game on the board. */
static void make(State *s, int move)
{
    int o = move & 511, t = move >> 9, side = (int)s->side, outcome = 0;
    int64_t ply = ++s->ply, caught = s->caught_top;
    s->u_key[ply] = s->key;
    s->u_move[ply] = move;
    s->u_quiet[ply] = (int32_t)s->quiet;
    s->u_since[ply] = (int32_t)s->since;
    s->u_caught[ply] = (int32_t)caught;
    s->u_side[ply] = (int8_t)side;
    s->played++;
    bool fell = apply(s, o, t);
    int n = (int)(s->caught_top - caught);
    if (n) {
        s->quiet = 0;
        s->taken[side] += n;
        if (!s->turncoats)
            s->since = ply;
    } else {
        s->quiet++;
    }
    int king = (int)s->king;
    if (fell)
        outcome = KING_CAPTURED | ATTACKERS_WIN;
    else if (king && side == 1 && s->goal[t] && king == t)
        outcome = KING_ESCAPED | DEFENDERS_WIN;
    else if (s->exit_fort && s->edge[king] && fort_holds(s))
        outcome = EXIT_FORT | DEFENDERS_WIN;
    else if (side == 0 && s->encirclement && surrounded(s, t, n))
        outcome = SURROUNDED | ATTACKERS_WIN;
    else if (s->count[0] == 0 && s->capture_all)
        outcome = ALL_CAPTURED | DEFENDERS_WIN;
    s->outcome = outcome;
    s->side = 1 - side;
    s->key ^= s->side_zobrist;
    s->keys[ply] = s->repetition_board && s->side ? s->key ^ s->side_zobrist : s->key;
}

static void undo(State *s)
{
    int64_t ply = s->ply--;
    int move = s->u_move[ply], o = move & 511, t = move >> 9, side = s->u_side[ply];
    int64_t caught = s->u_caught[ply];
    s->side = side;
    s->taken[side] -= s->caught_top - caught;
    while (s->caught_top > caught)
        restore_piece(s);
    int c = s->board[t], p = c & 15;
    s->board[t] = (uint16_t)(c ^ p);
    s->board[o] |= (uint16_t)p;
    s->slot[o] = s->slot[t];
    s->slot[t] = 0;
    s->pieces[side][s->slot[o]] = (uint16_t)o;
    if (p == KING)
        s->king = o;
    s->key = s->u_key[ply];
    s->quiet = s->u_quiet[ply];
    s->since = s->u_since[ply];
    s->outcome = 0;
    s->played--;
}

/* ---- Ends by the history of a game --------------------------------------------------------------------------- */

/* How often the position after the last turn has stood; many if since stack index `root` (unless that is < 0). */
static int occurrences(const State *s, int64_t root)
{
    uint64_t key = s->keys[s->ply];
    int64_t since = s->since, stride = s->repetition_stride;
    int count = 1;
    for (int64_t i = s->ply - stride; i >= since; i -= stride)
        if (s->keys[i] == key) {
            if (root >= 0 && i >= root)
                return 1 << 20;
            count++;
        }
    return count;
}

static int no_move_outcome(const State *s)
{
    if (s->no_move == 0)
        return NO_LEGAL_MOVE | (s->side ? ATTACKERS_WIN : DEFENDERS_WIN);
    if (s->no_move == 1)
        return NO_LEGAL_MOVE | DRAW;
    return NO_LEGAL_MOVE | (int)(s->no_move - 1) << 8;
}

static int repeated(const State *s, int mover)
{
    switch (s->repetition) {
    case 1: return REPETITION | DRAW;
    case 2: return REPETITION | (2 - mover) << 8;
    case 3: return REPETITION | (1 + mover) << 8;
    case 4: return REPETITION | DEFENDERS_WIN;
    default: return REPETITION | ATTACKERS_WIN;
    }
}

/* The outcome by repetition, material or limits after a completed turn, else 0. */
static int adjudicate(State *s, int64_t root)
{
    int verdict = 0;
    if (s->repetition && occurrences(s, root) >= s->repetition_count)
        verdict = repeated(s, s->u_side[s->ply]);
    else if (s->quiet == 0 && s->count[0] <= s->material_attackers && s->count[1] - 1 <= s->material_defenders)
        verdict = MATERIAL | DRAW;
    else if (s->quiet_limit && s->quiet >= s->quiet_limit)
        verdict = QUIET_LIMIT | DRAW;
    else if (s->move_limit && s->played >= s->move_limit)
        verdict = MOVE_LIMIT | DRAW;
    return verdict && !has_pseudo_legal_move(s) ? no_move_outcome(s) : verdict;
}

/* 0 unless a limit is so near that a search's values depend on the plies left to it. */
static uint64_t limit_salt(const State *s)
{
    int64_t salt = 0;
    if (s->move_limit && s->move_limit - s->played < 64)
        salt = s->move_limit - s->played + 1;
    if (s->quiet_limit && s->quiet_limit - s->quiet < 64)
        salt += (s->quiet_limit - s->quiet + 1) << 8;
    return (uint64_t)salt;
}

/* ---- Perft and random playouts ------------------------------------------------------------------------------- */

static int64_t perft(State *s, int depth, int top)
{
    int end = generate_pseudo_legal(s, top);
    int64_t leaves = 0;
    if (depth == 1)
        return end - top;
    for (int i = top; i < end; i++) {
        make(s, s->moves[i]);
        if (s->outcome == 0)
            leaves += perft(s, depth - 1, end);
        undo(s);
    }
    return leaves;
}

/* A uniform random integer in [0, n): xorshift64*, the high half scaled. */
static inline int below(State *s, int n)
{
    uint64_t x = s->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    s->random = x;
    return (int)((x * 0x2545F4914F6CDD1DULL >> 33) * (uint64_t)n >> 31);
}

/* A uniformly random legal move, 0 if there is none: draws pairs of a piece and a square in line with it. */
static int random_move(State *s)
{
    int size = (int)s->width, spread = 2 * size, n = (int)s->count[s->side] * spread;
    for (int i = 0; i < (n ? 256 : 0); i++) {
        int r = below(s, n), k = r % spread, o = s->pieces[s->side][r / spread];
        int t = k < size ? o - o % STRIDE + 1 + k : (k - size + 1) * STRIDE + o % STRIDE;
        if (t != o && can_reach(s, o, t))
            return o | t << 9;
    }
    int end = generate_pseudo_legal(s, 0);
    return end ? s->moves[below(s, end)] : 0;
}

static int playout(State *s, int most)
{
    for (int i = 0; i < most && s->outcome == 0; i++) {
        int move = random_move(s);
        if (move == 0) {
            s->outcome = no_move_outcome(s);
            break;
        }
        make(s, move);
        if (s->outcome == 0)
            s->outcome = adjudicate(s, -1);
    }
    return (int)s->outcome;
}

static void playouts(State *s, int games, int most)
{
    while (games--) {
        int64_t ply = s->ply;
        int outcome = playout(s, most);
        s->tally[0] += s->ply - ply;
        s->tally[1 + (outcome ? (outcome >> 8) - 1 : 3)]++;
        while (s->ply > ply)
            undo(s);
        s->outcome = 0;
    }
}

/* ---- Moves that change much ---------------------------------------------------------------------------------- */

enum { WORTH_ESCAPE = 255, WORTH_KING = 254, WORTH_CAPTURE = 32 };

/* Whether an attacker from o arriving at t beside the king would leave him no unhostile neighbour he needs. */
static bool king_pressed(const State *s, int t, int o)
{
    int king = (int)s->king, sides = s->king_sides[king];
    if (sides == 2)
        return 2 * king - t != o && helps_take(s, 2 * king - t, KING);
    if (sides == 0)
        return false;
    for (int k = 0; k < 4; k++) {
        int x = king + DIRECTIONS[k];
        if (x == t || (x != o && helps_take(s, x, KING)))
            continue;
        if (x == o || piece_on(s, x) != WALL || s->king_on_edge == 0 || (s->king_on_edge == 2 && s->count[1] > 1))
            return false;
    }
    return true;
}

/* A guess what a move is worth looking at: 255 escapes, 254 takes the king, else 32 per man taken. */
static int order_score(const State *s, int move)
{
    int o = move & 511, t = move >> 9, p = piece_on(s, o), side = p >> 3, value = 0;
    if (p == KING && s->goal[t])
        return WORTH_ESCAPE;
    if (s->active_captors >> p & 1) {
        int victims = (int)s->victims[side];
        for (int k = 0; k < 4; k++) {
            int d = DIRECTIONS[k], q = piece_on(s, t + d);
            if ((victims >> q & 1) && t + 2 * d != o && helps_take(s, t + 2 * d, q))
                value += WORTH_CAPTURE;
        }
    }
    if (side == 0 && s->king) {
        int away = abs((int)s->king - t);
        if ((away == 1 || away == STRIDE) && king_pressed(s, t, o))
            return WORTH_KING;
    }
    return value;
}

/* Moves of pieces of `side` in `mask` to the square e, seen from e outwards; none written twice. */
static inline int arrivals(State *s, int e, int side, int mask, int top, int begin)
{
    bool special = s->board[e] != 0;
    for (int k = 0; k < 4; k++) {
        int d = DIRECTIONS[k], o = e + d, c;
        bool clear = true;
        while (((c = s->board[o]) & 15) == 0) {
            clear &= c == 0;
            o += d;
        }
        int p = c & 15, move = o | e << 9;
        if (p == WALL || p >> 3 != side || !(mask >> p & 1))
            continue;
        if ((special || !clear || s->limited) && !can_reach(s, o, e))
            continue;
        bool known = false;
        for (int i = begin; i < top; i++)
            known |= s->moves[i] == move;
        if (!known)
            s->moves[top++] = move;
    }
    return top;
}

static int generate_noisy(State *s, int top)
{
    int begin = top, side = (int)s->side, enemy = 1 - side, king = (int)s->king;
    if (side == 1 && king)
        for (int k = 0; k < 4; k++)
            for (int d = DIRECTIONS[k], t = king + d; piece_on(s, t) == 0; t += d)
                if (s->goal[t] && can_reach(s, king, t)) {
                    s->moves[top++] = king | t << 9;
                    break;
                }
    if (side == 0 && king)
        for (int k = 0; k < 4; k++) {
            int t = king + DIRECTIONS[k];
            if (piece_on(s, t) == 0 && king_pressed(s, t, 0))
                top = arrivals(s, t, side, 31, top, begin);
        }
    int victims = (int)s->victims[side];
    for (int i = 0; i < s->count[enemy]; i++) {
        int v = s->pieces[enemy][i], q = piece_on(s, v);
        if (!(victims >> q & 1))
            continue;
        for (int k = 0; k < 4; k++) {
            int d = DIRECTIONS[k];
            if (piece_on(s, v + d) == 0 && helps_take(s, v - d, q))
                top = arrivals(s, v + d, side, (int)s->active_captors, top, begin);
        }
    }
    return top;
}

/* ---- Evaluation ---------------------------------------------------------------------------------------------- */

/* Captures and the king's way home in centipawns for the side to move (engine/evaluators/networks/simple.py). */
static int evaluate(const Weights *p, const State *s)
{
    double units = (double)(10 * (s->taken[0] - s->taken[1]) + s->goal_distance[s->king]);
    int value = least(most_of((int)(units * p->scale), -9000), 9000);
    return s->side == 0 ? value : -value;
}

/* ---- Alpha-beta ---------------------------------------------------------------------------------------------- */

enum { MATE = 30000, WON = 29000, INFINITE = 32000, BUCKET = 4, QUIET_PLIES = 24 };
enum { MAX_PLY = LENGTH(((Search *)0)->pv) - 2, ROOM = LENGTH(((State *)0)->moves) - 3 * (1 << 13) };
enum { EXACT = 1, LOWER, UPPER, TABLE_MOVE = (1 << 18) - 1 };

/* The data: move | value << 18 | depth << 34 | bound << 42 | generation << 44. */
typedef struct { uint64_t key, data; } Entry;

static inline Entry *bucket_of(const Search *td, Entry *table, uint64_t key)
{
    return table + (key & (uint64_t)td->mask) * BUCKET;
}

static inline int64_t probe(const Search *td, Entry *table, uint64_t key)
{
    const Entry *entry = bucket_of(td, table, key);
    for (int i = 0; i < BUCKET; i++)
        if (entry[i].key == key)
            return (int64_t)entry[i].data;
    return 0;
}

static inline void store(const Search *td, Entry *table, uint64_t key, int move, int value, int depth, int bound)
{
    Entry *entry = bucket_of(td, table, key), *worst = entry;
    int64_t worst_worth = 1LL << 40;
    for (int i = 0; i < BUCKET; i++) {
        int64_t data = (int64_t)entry[i].data, age = (td->generation - (data >> 44)) & 63;
        if (entry[i].key == key) {
            if (move == 0)
                move = (int)(data & TABLE_MOVE);
            worst = entry + i;
            break;
        }
        int64_t worth = data ? (data >> 34 & 255) - 8 * age : -10000;
        if (worth < worst_worth) {
            worst_worth = worth;
            worst = entry + i;
        }
    }
    worst->key = key;
    worst->data = (uint64_t)((int64_t)move | (int64_t)(value + 32768) << 18 | (int64_t)depth << 34 |
                             (int64_t)bound << 42 | td->generation << 44);
}

static inline int to_table(int value, int ply)
{
    return value > WON ? value + ply : value < -WON ? value - ply : value;
}

static inline int from_table(int value, int ply) { return to_table(value, -ply); }

static inline int terminal_value(int outcome, int side, int ply)
{
    int winner = outcome >> 8;
    return winner == 3 ? 0 : winner == side + 1 ? MATE - ply : ply - MATE;
}

static inline bool tick(Search *td)
{
    td->nodes++;
    if (td->nodes >= td->node_limit || td->stop)
        td->aborted = 1;
    return td->aborted != 0;
}

static inline void update_pv(Search *td, int ply, int move)
{
    int length = td->pv_length[ply + 1];
    td->pv[ply][ply] = move;
    for (int i = ply + 1; i < length; i++)
        td->pv[ply][i] = td->pv[ply + 1][i];
    td->pv_length[ply] = length;
}

/* Bring the move with the highest order among the rest to place i. */
static inline int pick_move(State *s, Search *td, int i, int end)
{
    int best = i, order = td->order[i];
    for (int j = i + 1; j < end; j++)
        if (td->order[j] > order) {
            best = j;
            order = td->order[j];
        }
    int move = s->moves[best];
    if (best != i) {
        s->moves[best] = s->moves[i];
        td->order[best] = td->order[i];
        s->moves[i] = move;
        td->order[i] = order;
    }
    return move;
}

/* What was evaluated before is remembered: 48 bits of the key, 16 of the value. */
static int static_eval(const State *s, Search *td, Weights *p)
{
    uint64_t *word = &td->eval_cache[s->key >> (64 - __builtin_ctz(LENGTH(td->eval_cache)))], mark = s->key << 16;
    if (*word && *word >> 16 << 16 == mark)
        return (int)(*word & 65535) - 32768;
    int value = evaluate(p, s);
    *word = mark | (uint64_t)(value + 32768);
    return value;
}

static int quiesce(State *s, Search *td, Weights *p, int alpha, int beta, int ply, int bottom, int top)
{
    if (tick(td))
        return 0;
    td->pv_length[ply] = ply;
    if (ply > td->seldepth)
        td->seldepth = ply;
    int best = static_eval(s, td, p), side = (int)s->side;
    if (best >= beta || ply >= bottom || top > ROOM)
        return best;
    alpha = most_of(alpha, best);
    int end = generate_noisy(s, top);
    for (int i = top; i < end; i++)
        td->order[i] = order_score(s, s->moves[i]);
    for (int i = top; i < end; i++) {
        int move = pick_move(s, td, i, end), value;
        make(s, move);
        int outcome = s->outcome ? (int)s->outcome : adjudicate(s, td->root);
        if (outcome) {
            td->pv_length[ply + 1] = ply + 1;
            value = terminal_value(outcome, side, ply + 1);
        } else {
            value = -quiesce(s, td, p, -beta, -alpha, ply + 1, bottom, end);
        }
        undo(s);
        if (td->aborted)
            return 0;
        if (value > best) {
            best = value;
            if (value > alpha) {
                alpha = value;
                update_pv(td, ply, move);
                if (value >= beta)
                    break;
            }
        }
    }
    return best;
}

static inline int by_origin(int move) { return (move & 511) << 9 | move >> 9; }

/* Move a history counter towards the bonus; it can never leave +-16384. Shifts round down, as the kernel does. */
static inline void update_history(Search *td, int side, int move, int bonus)
{
    int16_t *counter = &td->history[side][by_origin(move)];
    *counter = (int16_t)(*counter + bonus - (*counter * abs(bonus) >> 14));
}

static int order_of(const State *s, const Search *td, int ply, int move)
{
    int order = order_score(s, move) << 16;
    return move == td->killers[ply][0]   ? order + 60001
           : move == td->killers[ply][1] ? order + 60000
                                         : order + 20000 + td->history[s->side][by_origin(move)];
}

/* Whether a move of another position is legal here. */
static bool is_legal(const State *s, int move)
{
    int p = piece_on(s, move & 511);
    return p && p >> 3 == s->side && can_reach(s, move & 511, move >> 9);
}

enum { STAGE_TABLE, STAGE_NOISY, STAGE_KILLERS, STAGE_QUIET, STAGE_DONE };

/* Write the moves of the next stage that has any from `end` on. */
static int generate_stage(State *s, Search *td, int ply, int top, int end, int table_move)
{
    int begin = end;
    while (end == begin && td->stage[ply] < STAGE_DONE)
        switch (td->stage[ply]++) {
        case STAGE_TABLE:
            if (table_move && is_legal(s, table_move)) {
                s->moves[end] = table_move;
                td->order[end++] = 1 << 24;
            }
            break;
        case STAGE_NOISY:
            for (int i = begin, last = generate_noisy(s, begin); i < last; i++)
                if (s->moves[i] != table_move) {
                    s->moves[end] = s->moves[i];
                    td->order[end] = order_of(s, td, ply, s->moves[end]);
                    end++;
                }
            break;
        case STAGE_KILLERS:
            for (int i = 0; i < 2; i++) {
                int move = td->killers[ply][i];
                if (move && move != table_move && order_score(s, move) == 0 && is_legal(s, move)) {
                    s->moves[end] = move;
                    td->order[end++] = 60001 - i;
                }
            }
            break;
        default:
            for (int i = begin, last = generate_pseudo_legal(s, begin); i < last; i++) {
                bool known = false;
                for (int j = top; j < begin; j++)
                    known |= s->moves[j] == s->moves[i];
                if (!known) {
                    s->moves[end] = s->moves[i];
                    td->order[end] = order_of(s, td, ply, s->moves[end]);
                    end++;
                }
            }
        }
    return end;
}

static int search(State *s, Search *td, Entry *table, Weights *p, int depth, int alpha, int beta, int ply, int top)
{
    if (depth <= 0 || ply >= MAX_PLY - QUIET_PLIES - 1 || top > ROOM)
        return quiesce(s, td, p, alpha, beta, ply, ply + QUIET_PLIES, top);
    if (tick(td))
        return 0;
    td->pv_length[ply] = ply;
    if (ply > td->seldepth)
        td->seldepth = ply;
    alpha = most_of(alpha, ply - MATE);
    beta = least(beta, MATE - ply - 1);
    if (alpha >= beta)
        return alpha;
    uint64_t key = s->key ^ limit_salt(s) * 0x9E3779B97F4A7C15ULL;
    int64_t data = probe(td, table, key);
    int table_move = (int)(data & TABLE_MOVE), side = (int)s->side;
    if (data && beta - alpha == 1 && (data >> 34 & 255) >= depth) {
        int value = from_table((int)(data >> 18 & 65535) - 32768, ply), bound = (int)(data >> 42) & 3;
        if (bound == EXACT || (bound == LOWER && value >= beta) || (bound == UPPER && value <= alpha))
            return value;
    }
    int end = top, best = -INFINITE, best_move = 0, old_alpha = alpha;
    td->stage[ply] = STAGE_TABLE;
    for (int i = top;; i++) {
        if (i == end && (end = generate_stage(s, td, ply, top, end, table_move)) == i)
            break;
        int move = pick_move(s, td, i, end), value;
        make(s, move);
        if (depth > 1)
            __builtin_prefetch(bucket_of(td, table, s->key));
        int outcome = s->outcome ? (int)s->outcome : adjudicate(s, td->root);
        if (outcome) {
            td->pv_length[ply + 1] = ply + 1;
            value = terminal_value(outcome, side, ply + 1);
        } else if (i == top) {
            value = -search(s, td, table, p, depth - 1, -beta, -alpha, ply + 1, end);
        } else {
            value = -search(s, td, table, p, depth - 1, -alpha - 1, -alpha, ply + 1, end);
            if (alpha < value && value < beta)
                value = -search(s, td, table, p, depth - 1, -beta, -alpha, ply + 1, end);
        }
        undo(s);
        if (td->aborted)
            return 0;
        if (value <= best)
            continue;
        best = value;
        best_move = move;
        if (value <= alpha)
            continue;
        alpha = value;
        update_pv(td, ply, move);
        if (value < beta)
            continue;
        if (order_score(s, move) == 0) {
            if (td->killers[ply][0] != move) {
                td->killers[ply][1] = td->killers[ply][0];
                td->killers[ply][0] = move;
            }
            int bonus = least(32 * depth * depth, 4096);
            update_history(td, side, move, bonus);
            for (int j = top; j < i; j++)
                update_history(td, side, s->moves[j], -bonus);
        }
        break;
    }
    if (end == top)
        return terminal_value(no_move_outcome(s), side, ply);
    int bound = best >= beta ? LOWER : best <= old_alpha ? UPPER : EXACT;
    store(td, table, key, bound == UPPER ? 0 : best_move, to_table(best, ply), depth, bound);
    return best;
}

static int search_root(State *s, Search *td, Entry *table, Weights *p, int depth)
{
    int alpha = -INFINITE, beta = INFINITE, side = (int)s->side;
    td->root_best = -1;
    td->pv_length[0] = 0;
    for (int i = 0; i < td->root_count; i++) {
        int move = td->root_moves[i], value;
        make(s, move);
        int outcome = s->outcome ? (int)s->outcome : adjudicate(s, td->root);
        if (outcome) {
            td->nodes++;
            td->pv_length[1] = 1;
            value = terminal_value(outcome, side, 1);
        } else if (i == 0) {
            value = -search(s, td, table, p, depth - 1, -beta, -alpha, 1, 0);
        } else {
            value = -search(s, td, table, p, depth - 1, -alpha - 1, -alpha, 1, 0);
            if (value > alpha && !td->aborted)
                value = -search(s, td, table, p, depth - 1, -beta, -alpha, 1, 0);
        }
        undo(s);
        if (td->aborted)
            break;
        td->root_values[i] = value;
        if (value > alpha) {
            alpha = value;
            td->root_best = i;
            td->root_value = value;
            update_pv(td, 0, move);
        }
    }
    return alpha;
}

/* Iterative deepening to a depth; the best move of one iteration is the first of the next. */
static void deepen(State *s, Search *td, Entry *table, Weights *p, int depth)
{
    for (int d = 1; d <= depth; d++) {
        int value = search_root(s, td, table, p, d), best = (int)td->root_best, move = td->root_moves[best];
        memmove(td->root_moves + 1, td->root_moves, (size_t)best * sizeof *td->root_moves);
        td->root_moves[0] = move;
        printf("depth %d %lld %d %d\n", d, (long long)td->nodes, value, move);
    }
}

/* ---- Command line -------------------------------------------------------------------------------------------- */

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "bench_reference: %s: %s\n", what, which);
    exit(2);
}

/* Memory as numpy gives it for records of this size: on huge pages where the system has them, written once. */
static void *room_for(size_t bytes)
{
    size_t whole = (bytes + (1u << 21) - 1) & ~(size_t)((1u << 21) - 1);
    void *memory = aligned_alloc(1u << 21, whole);
    if (!memory)
        fail("no memory", "state");
#ifdef MADV_HUGEPAGE
    madvise(memory, whole, MADV_HUGEPAGE);
#endif
    memset(memory, 0, whole);
    return memory;
}

static void *record(const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    void *memory = room_for(bytes);
    if (!file || fread(memory, 1, bytes, file) != bytes || getc(file) != EOF)
        fail("not a record of this layout", path);
    fclose(file);
    return memory;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("expected", "STATE perft DEPTH TIMES | playouts GAMES SEED MOST_PLIES | search DEPTH SEARCH WEIGHTS");
    const char *work = argv[2];
    State *s = record(argv[1], sizeof(State));
    if (s->opentafl || s->jumpers || s->capture_run || s->berserk || s->shieldwall_any || s->sealed || s->draw_fort ||
        s->repetition > 5)
        fail("a rule that this program does not know is on", argv[1]);
    clock_t start;
    int number = atoi(argv[3]);
    if (!strcmp(work, "perft") && argc == 5) {
        int64_t leaves = 0;
        start = clock();
        for (int i = atoi(argv[4]); i > 0; i--)
            leaves += perft(s, number, 0);
        printf("leaves %lld\n", (long long)leaves);
    } else if (!strcmp(work, "playouts") && argc == 6) {
        s->random = strtoull(argv[4], NULL, 10);
        start = clock();
        playouts(s, number, atoi(argv[5]));
        printf("plies %lld\n", (long long)s->tally[0]);
        printf("results %lld %lld %lld %lld\n", (long long)s->tally[1], (long long)s->tally[2],
               (long long)s->tally[3], (long long)s->tally[4]);
    } else if (!strcmp(work, "search") && argc == 6) {
        Search *td = record(argv[4], sizeof(Search));
        Weights *p = record(argv[5], sizeof(Weights));
        Entry *table = room_for((size_t)(td->mask + 1) * BUCKET * sizeof(Entry));
        start = clock();
        deepen(s, td, table, p, number);
    } else {
        fail("no such work", work);
        return 2;
    }
    printf("seconds %.6f\n", (double)(clock() - start) / CLOCKS_PER_SEC);
    return 0;
}
