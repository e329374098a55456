// The page: a game on the board, its engine, and the controls. The server decides which moves are legal, what they
// capture and how a game ends.

import { $ } from "./dom.js";
import { Analysis } from "./analysis.js";
import { Board, squaresOf } from "./board.js";
import { NewGame, askToken, loading, saving } from "./dialogs.js";
import { Editor } from "./editor.js";
import { Game, other } from "./game.js";
import * as records from "./records.js";
import { Session } from "./session.js";
import { recall, remember, themes } from "./settings.js";
import { failed, note, passOn, say, showClocks, showGame, showRules, speak } from "./view.js";
import { Wire } from "./wire.js";
import * as words from "./words.js";

const FIRST = "brandubh"; // small: a first game is short
const FALLBACK = 3; // the level if no rating can be read
const HINT_NODES = 300000;
const MODES = {
  learn: () => import("./learn.js"),
  puzzles: () => import("./puzzles.js"),
  table: () => import("./table.js"),
  workshop: () => import("./workshop.js"),
  watch: () => import("./watch.js"),
};
const FILL_MS = 80; // the server accepts twenty frames a second

class App {
  constructor() {
    this.offer = null;
    this.game = null;
    this.search = null; // {n, node, purpose}
    this.mode = null; // what is on the board instead of a game: see `MODES`
    this.turned = false; // whether the defenders are at the bottom
    themes();
    this.wire = new Wire({
      welcome: (frame) => this.welcome(frame),
      status: (up) => this.connected(up),
      token: askToken,
      error: note,
    });
    this.session = new Session(this.wire, {
      opened: () => {
        if (this.mode) {
          this.mode.opened?.();
          return;
        }
        this.session.play(this.game.variant); // the variant may have changed meanwhile
        this.show(this.game.current, true);
      },
      state: (frame) => this.state(frame),
      reports: (lines) => this.thought(lines),
      bestmove: (move, n) => this.answered(move, n),
      compiling: (how) => say(`The engine is starting: ${how}`),
      complaint: (text) => this.complaint(text),
      closed: (text) => this.lost(text),
    });
    this.controls();
    setInterval(() => this.tick(), 100);
  }

  // The server

  welcome(frame) {
    const first = this.offer === null;
    this.offer = frame;
    this.mode?.again?.();
    if (first) {
      this.dialog = new NewGame(frame, (choice) => this.take(new Game(choice.variant, choice.players, choice)));
      this.begin();
    } else if (!this.session.sid) this.session.open(this.game.variant);
    else if (this.mode) this.mode.opened?.();
    else this.show(this.game.current, true);
  }

  /** The game in the address, or the one this tab had before. Custom rules are sent to the server first. */
  async begin() {
    const hash = location.hash.length > 1 && !this.named() ? location.hash : records.keptLink();
    let wrong = "";
    await records.prepared(this.wire, this.offer, hash).catch((error) => {
      wrong = words.capital(error.message);
    });
    wrong ||= records.stray(this.offer, hash);
    this.take(this.firstGame());
    note(wrong);
    this.enter();
  }

  firstGame() {
    const { offer } = this;
    const found = records.linked(offer, location.hash) ?? (location.hash.length > 1 && !this.named() ? null : records.kept(offer));
    if (found) return found;
    const name = offer.default.variant || FIRST;
    const variant = offer.variants.find((known) => known.name === name) ?? offer.variants[0];
    return new Game(variant, ["human", offer.default.player ? `player:${offer.default.player}` : "level:auto"]);
  }

  connected(up) {
    document.body.classList.toggle("offline", !up);
    if (up) return;
    this.search = null;
    say("Connection lost. Reconnecting …");
  }

  lost(text) {
    this.search = null;
    note(text);
    say(text);
  }

  // Games

  take(game) {
    this.halt();
    this.analysis?.reset();
    this.editor?.close();
    if (this.mode && this.named()) history.replaceState(null, "", " ");
    this.leave();
    this.game = game;
    this.turned = game.players[0] !== "human" && game.players[1] === "human";
    this.dress(game.variant);
    note("");
    this.session.play(game.variant);
    this.show(game.current, true);
  }

  /** Set the board up for a variant (or its name); `handlers` receive the moves when no game is being played. */
  dress(named, handlers = {}, special = {}) {
    const variant = named.name ? named : this.offer.variants.find((known) => known.name === named);
    const options = {
      files: variant.files,
      ranks: variant.ranks,
      slant: variant.game === "hex",
      special,
      pieces: words.piecesOf(variant),
      onMove: (m) => this.person(m),
      onRefused: (m, from, to) => this.refused(m, from, to),
      onSay: speak,
      ...handlers,
    };
    if (this.board) this.board.reset(options);
    else {
      this.board = new Board($("board"), options);
      this.analysis = new Analysis(this.board);
      this.editor = new Editor(this.board, this.wire, {
        use: (start) => this.take(new Game(this.game.variant, this.game.players, { start, think: this.game.think })),
        leave: () => this.show(this.game.current),
      });
    }
    this.board.flipped = false;
    $("board").setAttribute("aria-label", `${variant.name}, ${variant.files} by ${variant.ranks}`);
    this.board.setPosition(words.rowsOf(this.game.start ?? variant.startpos));
    showRules(variant);
  }

  /** Show a position outside the game: the pieces, the legal moves, and the move that led to it. */
  stand(fen, legal, moved = null) {
    this.board.setPosition(words.rowsOf(fen), moved);
    this.board.setLegal(legal);
    this.board.mark({ last: [], taken: [], arrows: [] });
  }

  // Modes other than a game

  /** The mode that the address names. */
  named() {
    return Object.keys(MODES).find((name) => new RegExp(`^#${name}(&|$)`).test(location.hash)) ?? null;
  }

  /** Whether a mode is shown and still addressed: late answers must not bring back a page that was left. */
  shows(mode) {
    return this.mode === mode && this.named() === mode.name;
  }

  /** Show what the address names. */
  async enter() {
    const name = this.named();
    if (!this.offer || (!name && !this.mode)) return;
    if (name === this.mode?.name) {
      await this.begun();
      return;
    }
    this.halt();
    this.analysis.clear();
    this.editor.close();
    if (!name) {
      await this.linked(() => this.take(this.game));
      return;
    }
    const { mode } = await MODES[name]();
    // Another address may have been opened meanwhile, or this one twice.
    if (this.named() !== name || this.mode?.name === name) return;
    this.leave();
    this.mode = mode(this);
    this.mode.name = name;
    document.body.classList.add("away");
    $("title").textContent = document.title = this.mode.title;
    document.title += " – hnefi";
    $("mode-card").replaceChildren(this.mode.card);
    $("mode-card").hidden = false;
    this.here();
    this.board.setLegal([]);
    await this.begun();
  }

  /** Start the mode with the parameters in the address. */
  async begun() {
    const { mode } = this;
    note("");
    try {
      await mode.enter();
    } catch (error) {
      if (this.shows(mode)) failed(error);
    }
  }

  /** Load the game in the address. If there is none, call `otherwise` and show the reason. */
  async linked(otherwise = () => {}) {
    const { hash } = location;
    let wrong = "";
    await records.prepared(this.wire, this.offer, hash).catch((error) => {
      wrong = words.capital(error.message);
    });
    if (hash !== location.hash) return;
    const game = records.linked(this.offer, hash);
    if (game) {
      this.take(game);
      return;
    }
    otherwise();
    note(wrong || records.stray(this.offer, hash));
  }

  leave() {
    if (!this.mode) return;
    this.mode.leave();
    this.mode = null;
    document.body.classList.remove("away");
    $("mode-card").hidden = true;
    this.here();
  }

  /** Mark the current page in the navigation. */
  here() {
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${this.mode?.name ?? ""}` || (!link.hash && !this.mode)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  /** Whether the board shows something other than the game. */
  get away() {
    return Boolean(this.mode) || Boolean(this.editor?.open);
  }

  // Moves

  /** Show a node of the game tree. */
  show(node, anew = false) {
    const before = this.game.current;
    this.game.current = node;
    if (this.search && this.search.node !== node) this.halt();
    this.analysis.clear();
    if (!node.state || anew) this.position(node);
    this.draw(node.parent === before ? { m: node.m, x: node.x ?? [] } : null);
    this.render();
    this.step();
  }

  position(node) {
    if (!this.session.sid) this.session.open(this.game.variant);
    this.session.position(this.game.start, node.moves());
  }

  state(frame) {
    if (this.mode) {
      this.mode.state?.(frame);
      return;
    }
    const { game, board } = this;
    if (frame.variant !== game.variant.name || (frame.start ?? null) !== game.start) return;
    const node = game.find(frame.moves);
    if (!node) return;
    const first = !node.state;
    node.learn(frame);
    if (JSON.stringify(board.special) !== JSON.stringify(frame.special)) {
      board.special = frame.special;
      board.build();
    }
    this.fillIn();
    if (!first && node === game.current && board.legal.size) return;
    if (node === game.current) {
      this.draw(this.arriving === node ? { m: node.m, x: node.x ?? [] } : null);
      this.arriving = null;
      if (node === game.live) this.arrived();
    }
    this.render();
    this.step();
  }

  /** Find the captures of a loaded game's moves, one position at a time, while the engine is idle. */
  fillIn() {
    clearTimeout(this.filling);
    this.filling = setTimeout(() => {
      const { game } = this;
      const next = [game.root, ...game.live.path()].find((node) => !node.state && node.children.some((child) => child.x === null));
      // The server answers only the last position, so the one on display goes first.
      if (next && game.current.state && !this.search) this.position(next);
    }, FILL_MS);
  }

  person(m) {
    if (!this.game.mine) return;
    note("");
    this.play(m);
  }

  play(m) {
    const { game } = this;
    const { side, legal } = game.state;
    const move = legal.find((known) => known.m === m);
    if (!move) return;
    this.halt();
    const child = game.play(move);
    speak(`${words.capital(game.called(side))}: ${words.spoken(child)}`);
    this.arriving = child.state ? null : child;
    this.analysis.clear();
    this.position(child);
    if (child.state) {
      this.draw({ m: child.m, x: child.x ?? [] });
      this.arrived();
    }
    this.board.setLegal([]);
    this.render();
    if (child.state) this.step();
  }

  /** The server has reported the state of the live position. */
  arrived() {
    const { clock, live, result } = this.game;
    if (live.state.outcome) {
      clock?.stop();
      speak(words.ending(live.state.outcome, this.game.variant.sides));
      this.count();
    } else if (!result) clock?.start(live.state.side);
  }

  /** Start whatever comes next: the engine's move or its analysis. */
  step() {
    const { game } = this;
    if (!this.session.sid || !game.state || this.away) return;
    if (game.follows && game.level === null) this.follow("");
    else if (game.thinker) {
      if (this.search?.purpose !== "move") this.go("move", game.thinker);
    } else if (this.analysis.on && !game.state.outcome) {
      if (!this.search) this.go("analysis", "level:10");
    } else if (this.search && this.search.purpose !== "hint") this.halt();
  }

  /** Ask for the level that matches the player; at the start, a note that is there (why an address was refused) stays. */
  async follow(result) {
    const { game } = this;
    if (this.following === game) return;
    this.following = game;
    try {
      const answer = await this.wire.ask({ t: "level", game: game.variant.game, level: game.level ?? 0, result, ratings: recall("levels") ?? "" });
      if (answer.ratings) remember("levels", answer.ratings);
      if (!result) game.level = answer.level;
      if (this.game === game && !this.away && (result || !$("note").textContent)) note(answer.text);
    } catch (error) {
      game.level ??= FALLBACK;
      failed(error);
    }
    this.following = null;
    if (this.game !== game || result) return;
    this.render();
    this.step();
  }

  /** Rate a finished game, once. */
  count() {
    const { game } = this;
    if (!game.follows || !game.rated || game.level === null) return;
    game.rated = false;
    this.follow(game.score);
  }

  /** Play again, with the same sides or the other way round. */
  rematch(players) {
    const { variant, start, think, timing } = this.game;
    this.take(new Game(variant, players, { start, think, clock: timing }));
  }

  go(purpose, who) {
    this.halt();
    const { game } = this;
    this.session.choose(who === "level:auto" ? `level:${game.level}` : who, purpose === "analysis" ? $("lines").value : 1);
    this.position(game.current);
    let limits = "infinite";
    if (purpose === "hint") limits = `nodes ${HINT_NODES}`;
    else if (purpose === "move") limits = game.clock?.limits ?? `movetime ${game.think}`;
    this.analysis.clear();
    this.search = { n: this.session.tell(`go ${limits}`), node: game.current, purpose };
    this.render();
  }

  halt() {
    if (!this.search) return;
    this.search = null;
    this.session.tell("stop");
  }

  thought(lines) {
    this.analysis.take(lines, this.search?.node ?? this.game.current);
    this.showAnalysis();
  }

  answered(move, n) {
    if (this.search?.n !== n) return; // from a search that was abandoned
    const { node, purpose } = this.search;
    const { game } = this;
    this.search = null;
    if (purpose === "move" && node === game.live && game.atEnd) {
      if (move === "resign") this.finish(other(node.state.side), "resignation");
      else this.play(move);
    } else if (purpose === "hint") {
      this.board.mark({ arrows: [{ m: move, weight: 0.9 }] });
      note(`Hint: ${words.moveText({ m: move, x: null })}`);
      this.render();
      this.step();
    } else this.render();
  }

  complaint(text) {
    const { game } = this;
    if (text.startsWith("position") && !game.state && !this.mode) {
      // The link's moves are not legal: fall back to its starting position, then to the variant's.
      const { variant, players, think } = game;
      this.take(new Game(variant, players, { think, start: game.current === game.root ? null : game.start }));
    }
    const why = /^play \S+: (.*)$/.exec(text);
    note(why ? `Illegal move: ${why[1]}.` : text);
  }

  refused(m, from, to) {
    const { state } = this.game;
    if (!state) return;
    if (state.outcome) note("The game is over.");
    else if (!this.game.mine) note("It is not your turn.");
    else if (m || this.board.placing()) {
      this.halt();
      this.position(this.game.current);
      this.session.tell(`play ${m ?? to}`);
      this.step();
    }
  }

  finish(result, reason) {
    this.halt();
    this.game.result = { result, reason };
    this.game.clock?.stop();
    speak(words.ending(this.game.result, this.game.variant.sides));
    this.show(this.game.current);
    this.count();
  }

  takeBack() {
    const node = this.game.before();
    if (!node) return;
    this.halt();
    this.game.result = null;
    this.game.clock?.stop();
    this.game.live = node;
    this.show(node);
    if (node.state) this.arrived();
  }

  tick() {
    if (!this.game?.clock) return;
    showClocks(this.game, this.turned);
    const { lost } = this.game.clock;
    if (lost) this.finish(other(lost), "time");
  }

  // What is shown

  draw(moved) {
    const { state, current, mine } = this.game;
    if (!state || this.away) return;
    this.board.setPosition(words.rowsOf(state.fen), moved);
    this.board.setLegal(mine ? state.legal : []);
    const last = current.m ? squaresOf(current.m) : null;
    this.board.mark({ last: (last ?? []).filter(Boolean), taken: current.x ?? [], arrows: [] });
  }

  render() {
    if (!this.game || this.away) return;
    showGame(this.game, this.turned, (node) => this.show(node));
    $("board").classList.toggle("busy", this.search?.purpose === "move");
    this.analysis.showCurve(this.game, (node) => this.show(node));
    this.showAnalysis();
    $("exact-pick").hidden = !this.game.variant.solved;
    this.exact?.show(this.game);
  }

  showAnalysis() {
    this.analysis.show(this.game, this.turned, this.search?.purpose === "analysis");
  }

  // Controls

  controls() {
    const on = (id, act) => $(id).addEventListener("click", () => this.game && act());
    on("new", () => this.dialog.open(this.game.variant, this.game.players));
    on("first", () => this.show(this.game.root));
    on("back", () => this.game.current.parent && this.show(this.game.current.parent));
    on("on", () => this.game.current.children.length && this.show(this.game.current.children[0]));
    on("last", () => this.show(this.game.current.tip()));
    on("undo", () => this.takeBack());
    on("hint", () => this.game.mine && this.go("hint", "level:10"));
    on("edit", () => {
      this.halt();
      const { state, start, variant } = this.game;
      this.editor.begin(variant, state?.fen ?? start ?? variant.startpos);
    });
    on("flip", () => this.flip());
    on("swap", () => this.person("swap"));
    on("resign", () => this.game.state && this.finish(other(this.game.loser), "resignation"));
    on("pause", () => {
      this.game.paused = !this.game.paused;
      if (this.game.paused) this.halt();
      this.show(this.game.current);
    });
    on("share", () => this.share());
    on("again", () => this.rematch(this.game.players));
    on("other", () => this.rematch([...this.game.players].reverse()));
    on("study", () => {
      $("review").click();
      $("analysis-card").scrollIntoView({ block: "nearest" });
    });
    on("review", () =>
      this.analysis.toggleReview(this.wire, this.game, () => this.render()),
    );
    $("analyse").addEventListener("change", () => {
      this.halt();
      this.analysis.clear();
      this.board.mark({ arrows: [] });
      this.render();
      this.step();
    });
    $("exact").addEventListener("change", async () => {
      const { Exact } = await import("./exact.js");
      this.exact ??= new Exact(this.wire);
      this.render();
    });
    $("lines").addEventListener("change", () => {
      if (this.search?.purpose !== "analysis") return;
      this.halt();
      this.step();
    });
    addEventListener("pagehide", () => this.game && records.keep(this.game));
    addEventListener("hashchange", () => {
      if (this.mode || this.named()) {
        this.enter();
        return;
      }
      if (this.offer) this.linked();
    });
    addEventListener("keydown", (event) => this.key(event));
    loading(async (text) => this.take(await records.read(this.wire, this.offer, this.game.variant, text)));
    saving((format) => records.write(this.wire, this.game, format));
  }

  key(event) {
    if (event.altKey || event.metaKey || this.editor?.open || event.target.closest?.("input, textarea, select, dialog")) return;
    if (this.mode) {
      this.mode.key?.(event);
      return;
    }
    const keys = { ",": "back", ".": "on", u: "undo", h: "hint", f: "flip" };
    const id = event.ctrlKey ? { ArrowLeft: "first", ArrowRight: "last" }[event.key] : keys[event.key.toLowerCase()];
    if (!id) return;
    event.preventDefault();
    $(id).click();
  }

  async share() {
    const link = this.game.fragment();
    history.replaceState(null, "", link);
    await passOn("this position");
  }

  flip() {
    this.turned = !this.turned;
    this.board.flip();
    this.render();
  }
}

new App();
