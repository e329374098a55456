/* Fylgja: a complete tafl engine in one file. It plays brandubh, one ply deep, and speaks `uci`.
 *
 *     cc -std=c11 -O2 -o fylgja fylgja.c
 *
 * Copy it, rename it, give it a search. Everything between it and the arena is in the second half.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 7, SQUARES = SIZE * SIZE, THRONE = SQUARES / 2, MOVES = SQUARES * 2 * (SIZE - 1) };
enum { LINE = 1 << 16, WORDS = LINE / 2 + 1, PLIES = LINE / 5 + 2, WON = 100000 };

static const char START[] = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3";

/* ---- The rules of brandubh ------------------------------------------------------------------------------- */

typedef struct {
    char at[SQUARES]; /* t attacker, T defender, K king, . nobody; a1 is 0, b1 is 1, a2 is SIZE */
    char side;        /* a or d: to move */
    char winner;      /* a or d, 0 as long as the game goes on */
} Board;

typedef struct {
    int from, to;
} Move;

static char owner(char piece) { return piece == '.' ? 0 : piece == 't' ? 'a' : 'd'; }
static char other(char side) { return side == 'a' ? 'd' : 'a'; }
static bool side_file(int sq) { return sq % SIZE == 0 || sq % SIZE == SIZE - 1; }
static bool end_rank(int sq) { return sq / SIZE == 0 || sq / SIZE == SIZE - 1; }
static bool corner(int sq) { return side_file(sq) && end_rank(sq); }
static bool edge(int sq) { return side_file(sq) || end_rank(sq); }

/* The neighbour of a square in one of four directions, -1 beyond the edge. */
static int step(int sq, int direction) {
    static const int files[] = {0, 1, 0, -1}, ranks[] = {1, 0, -1, 0};
    if (sq < 0) return -1;
    int file = sq % SIZE + files[direction], rank = sq / SIZE + ranks[direction];
    return file < 0 || file >= SIZE || rank < 0 || rank >= SIZE ? -1 : rank * SIZE + file;
}

/* All moves of the side to move, at most MOVES. Pieces slide; all may cross the empty throne, only the king stops
 * on it or on a corner. */
static int generate(const Board *board, Move *moves) {
    int count = 0;
    for (int from = 0; from < SQUARES; from++) {
        if (owner(board->at[from]) != board->side) continue;
        for (int direction = 0; direction < 4; direction++)
            for (int to = step(from, direction); to >= 0 && board->at[to] == '.'; to = step(to, direction))
                if (board->at[from] == 'K' || (to != THRONE && !corner(to))) moves[count++] = (Move){from, to};
    }
    return count;
}

/* Whether somebody on `sq`, or the square itself, helps to capture `piece`. */
static bool hostile(const Board *board, int sq, char piece) {
    if (sq < 0) return false;
    if (board->at[sq] != '.') return owner(board->at[sq]) != owner(piece);
    return corner(sq) || (sq == THRONE && piece != 'K');
}

/* Whether the piece on `sq` is taken by the enemy that has just come to it in this direction. */
static bool taken(const Board *board, int sq, int direction) {
    if (board->at[sq] != 'K' || sq != THRONE) return hostile(board, step(sq, direction), board->at[sq]);
    for (int around = 0; around < 4; around++)
        if (board->at[step(sq, around)] != 't') return false;
    return true;
}

static bool surrounded(const Board *board) {
    bool seen[SQUARES] = {false};
    int found[SQUARES], count = 0;
    for (int sq = 0; sq < SQUARES; sq++)
        if (owner(board->at[sq]) == 'd') seen[found[count++] = sq] = true;
    for (int i = 0; i < count; i++) {
        if (edge(found[i])) return false;
        for (int direction = 0; direction < 4; direction++) {
            int near = step(found[i], direction);
            if (near >= 0 && !seen[near] && board->at[near] != 't') seen[found[count++] = near] = true;
        }
    }
    return true;
}

/* Plays a move; the number of men it takes. */
static int play(Board *board, Move move) {
    Move replies[MOVES];
    char mover = board->side;
    int count = 0, king = 0;
    board->at[move.to] = board->at[move.from];
    board->at[move.from] = '.';
    for (int direction = 0; direction < 4; direction++) {
        int near = step(move.to, direction);
        if (near < 0 || owner(board->at[near]) != other(mover) || !taken(board, near, direction)) continue;
        if (board->at[near] == 'K') king = 1;
        board->at[near] = '.';
        count++;
    }
    board->side = other(mover);
    if (king) board->winner = 'a';
    else if (board->at[move.to] == 'K' && corner(move.to)) board->winner = 'd';
    else if (mover == 'a' && surrounded(board)) board->winner = 'a';
    else if (!generate(board, replies)) board->winner = mover; /* nobody left to move, too */
    return count - king;
}

/* ---- Choosing a move: here is room for yours ------------------------------------------------------------- */

/* Corners that the king reaches with one move, and all his moves. */
static void ways(const Board *board, int *corners, int *moves) {
    *corners = *moves = 0;
    int king = 0;
    while (king < SQUARES && board->at[king] != 'K') king++;
    if (king == SQUARES) return;
    for (int direction = 0; direction < 4; direction++)
        for (int to = step(king, direction); to >= 0 && board->at[to] == '.'; to = step(to, direction)) {
            *corners += corner(to);
            ++*moves;
        }
}

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The best of `count` moves looked at one ply deep, in centipawns; among equals the seed decides. */
static int choose(const Board *board, const Move *moves, int count, uint64_t seed, Move *best) {
    int best_value = -2 * WON;
    for (int i = 0; i < count; i++) {
        Board after = *board;
        int value = 100 * play(&after, moves[i]), corners, free;
        ways(&after, &corners, &free);
        value += (board->side == 'd' ? 1 : -1) * (300 * corners + 4 * free);
        value += (int)(mix(seed * SQUARES * SQUARES + (uint64_t)(moves[i].from * SQUARES + moves[i].to)) % 4);
        if (after.winner) value = after.winner == board->side ? WON : -WON;
        if (value > best_value) {
            best_value = value;
            *best = moves[i];
        }
    }
    return best_value;
}

/* ---- The protocol ---------------------------------------------------------------------------------------- */

typedef struct {
    Board board;
    int plies;
    uint64_t seen[PLIES]; /* of every position so far: the third time the defenders lose */
} Game;

static Game games[2], *game = games;
static uint64_t seed = 1;
static bool thinking; /* an answer is held back until `stop` or `ponderhit` */

/* Says a line at once; if nobody listens any more, this is the end. */
static void say(const char *text) {
    printf("%s\n", text);
    if (fflush(stdout) == EOF) exit(0);
}

static void remember(Game *g) {
    uint64_t key = (uint64_t)g->board.side;
    int times = 1;
    for (int sq = 0; sq < SQUARES; sq++) key = mix(key * 31 + (uint64_t)g->board.at[sq]);
    for (int i = 0; i < g->plies; i++) times += g->seen[i] == key;
    g->seen[g->plies++] = key;
    if (times >= 3 && !g->board.winner) g->board.winner = 'a';
}

/* Reads the rows of a FEN, highest rank first; false if they are none. */
static bool read_rows(Board *board, const char *text) {
    int rank = SIZE - 1, file = 0, kings = 0;
    *board = (Board){.side = 'a'};
    for (; *text; text++) {
        const char *found = strchr("taATdDKk", *text);
        if (*text == '/') {
            if (file != SIZE || rank-- == 0) return false;
            file = 0;
        } else if (*text >= '1' && *text <= '7') {
            for (int i = *text - '0'; i > 0; i--, file++) {
                if (file >= SIZE) return false;
                board->at[rank * SIZE + file] = '.';
            }
        } else if (found && file < SIZE) {
            char piece = "tttTTTKK"[found - "taATdDKk"];
            board->at[rank * SIZE + file++] = piece;
            kings += piece == 'K';
        } else {
            return false;
        }
    }
    return rank == 0 && file == SIZE && kings == 1;
}

static bool read_square(const char *text, int *sq) {
    if (text[0] < 'a' || text[0] >= 'a' + SIZE || text[1] < '1' || text[1] >= '1' + SIZE) return false;
    *sq = (text[1] - '1') * SIZE + text[0] - 'a';
    return true;
}

static bool play_text(Game *g, const char *text) {
    Move move, moves[MOVES];
    if (strlen(text) != 4 || !read_square(text, &move.from) || !read_square(text + 2, &move.to)) return false;
    int count = g->board.winner ? 0 : generate(&g->board, moves);
    for (int i = 0; i < count; i++)
        if (moves[i].from == move.from && moves[i].to == move.to) {
            play(&g->board, move);
            remember(g);
            return true;
        }
    return false;
}

/* position startpos|fen ROWS SIDE ... [moves M ...]: set up aside, and taken over if all of it is right.
 * NULL then, otherwise what is wrong. */
static const char *position(char **words, int count) {
    Game *next = game == games ? games + 1 : games;
    bool fen = count > 2 && !strcmp(words[1], "fen");
    if (!fen && (count < 2 || strcmp(words[1], "startpos"))) return "position: expected startpos or fen";
    if (!read_rows(&next->board, fen ? words[2] : START)) return "position fen: expected 7 rows and one king";
    if (fen && count > 3 && !strcmp(words[3], "d")) next->board.side = 'd';
    next->plies = 0;
    remember(next);
    int i = 2;
    while (i < count && strcmp(words[i], "moves")) i++;
    for (i++; i < count; i++)
        if (!play_text(next, words[i])) return "position: a move that cannot be played";
    game = next;
    return NULL;
}

static void answer(void) {
    Move moves[MOVES], best = {0, 0};
    int count = game->board.winner ? 0 : generate(&game->board, moves);
    char move[5], score[32], text[100];
    if (count == 0) {
        say(game->board.winner == game->board.side ? "info depth 0 score mate 1" : "info depth 0 score mate 0");
        say("bestmove (none)");
        return;
    }
    int value = choose(&game->board, moves, count, seed + (uint64_t)game->plies, &best);
    snprintf(move, sizeof move, "%c%c%c%c", 'a' + best.from % SIZE, '1' + best.from / SIZE, 'a' + best.to % SIZE,
             '1' + best.to / SIZE);
    snprintf(score, sizeof score, value == WON ? "mate 1" : value == -WON ? "mate -1" : "cp %d", value);
    snprintf(text, sizeof text, "info depth 1 score %s nodes %d time 0 pv %s", score, count, move);
    say(text);
    snprintf(text, sizeof text, "bestmove %s", move);
    say(text);
}

/* A ply takes no time, so limits and clocks are all kept; but `infinite` and `ponder` wait for a word. */
static void go(char **words, int count) {
    thinking = count == 1;
    for (int i = 1; i < count; i++)
        if (!strcmp(words[i], "infinite") || !strcmp(words[i], "ponder")) thinking = true;
    if (!thinking) answer();
}

/* setoption name N value V; what is wrong, or NULL. */
static const char *set_option(char **words, int count) {
    if (count < 5 || strcmp(words[1], "name") || strcmp(words[3], "value")) return "setoption: expected name and value";
    if (!strcmp(words[2], "UCI_Variant") && !strcmp(words[4], "brandubh")) return NULL;
    if (strcmp(words[2], "Seed")) return "setoption: expected UCI_Variant and brandubh, or Seed";
    char *end;
    unsigned long long number = strtoull(words[4], &end, 10);
    if (*end || words[4][0] == '-' || number > UINT32_MAX) return "Seed: expected 0 to 4294967295";
    seed = number;
    return NULL;
}

/* One line without its end; blanks for control characters, and nothing at all if it is too long. False at the end. */
static bool read_line(char *line) {
    int c, length = 0;
    while ((c = getchar()) != EOF && c != '\n')
        if (length < LINE) line[length++] = c > ' ' ? (char)c : ' ';
    line[length < LINE ? length : 0] = 0;
    return c != EOF;
}

static void carry_out(char **words, int count) {
    static char *start[] = {"position", "startpos"};
    const char *command = words[0], *problem = NULL;
    if (!strcmp(command, "uci")) {
        say("id name Fylgja 1.0");
        say("id author the hnefi developers");
        say("option name UCI_Variant type combo default brandubh var brandubh");
        say("option name Seed type spin default 1 min 0 max 4294967295");
        say("uciok");
    } else if (!strcmp(command, "isready")) {
        say("readyok");
    } else if (!strcmp(command, "quit")) {
        exit(0);
    } else if (!strcmp(command, "stop") || !strcmp(command, "ponderhit")) {
        if (thinking) answer();
        thinking = false;
    } else if (thinking) {
        problem = "not while searching: expected stop before";
    } else if (!strcmp(command, "ucinewgame")) {
        position(start, 2);
    } else if (!strcmp(command, "position")) {
        problem = position(words, count);
    } else if (!strcmp(command, "setoption")) {
        problem = set_option(words, count);
    } else if (!strcmp(command, "go")) {
        go(words, count);
    } else if (count > 1) {
        carry_out(words + 1, count - 1); /* words that nobody knows may stand before a command */
    }
    if (problem) {
        char text[100];
        snprintf(text, sizeof text, "info string error %s", problem);
        say(text);
    }
}

int main(void) {
    static char line[LINE + 1], *words[WORDS], newgame[] = "ucinewgame";
    words[0] = newgame;
    carry_out(words, 1);
    while (read_line(line)) {
        int count = 0;
        for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) words[count++] = word;
        if (count) carry_out(words, count);
    }
    return 0;
}
