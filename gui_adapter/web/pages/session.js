// An engine process of the server: lines to it, numbered so that none is lost, and what it says.

/** Its search answers with the number that `go` returned; an answer with another is of a search that was left. */
export class Session {
  /** `on` = {opened, state, reports, bestmove, compiling, solved, complaint, closed}, each where it is wanted. */
  constructor(wire, on) {
    this.wire = wire;
    this.on = on;
    this.forget();
  }

  forget() {
    this.sid = null;
    this.opening = false;
    this.heard = this.count = 0;
    this.options = {}; // what it was told
    this.variant = null;
  }

  /** Ask for an engine, unless one is on its way. */
  open(variant) {
    if (this.opening) return;
    this.forget();
    this.variant = variant;
    this.opening = this.wire.open(this, variant.words ? "" : variant.name);
  }

  close() {
    if (this.sid) this.wire.close(this.sid);
    this.forget();
  }

  opened(sid) {
    this.sid = sid;
    this.opening = false;
    if (this.variant.words) this.tell(chosen(this.variant));
    this.on.opened?.();
  }

  take(frame) {
    if (frame.t === "state") this.on.state?.(frame);
    else if (frame.t === "info") this.on.reports?.(frame.lines);
    else if (frame.t === "closed") this.lost("The game's engine was closed. Your next move starts another.");
    else if (frame.t === "line") {
      this.heard = frame.m;
      this.line(frame.text, frame.n);
    }
  }

  line(text, answers) {
    if (text.startsWith("bestmove ")) this.on.bestmove?.(text.split(" ")[1], answers);
    else if (text.startsWith("info string compiling ")) this.on.compiling?.(text.slice(22));
    else if (text.startsWith("info string tb ")) this.on.solved?.(text.slice(15));
    else if (text.startsWith("info string error ")) this.on.complaint?.(text.slice(18));
    else if (text.startsWith("info ") && !text.startsWith("info string ")) this.on.reports?.([text]);
  }

  failed(frame) {
    // Its place on the server may be lost while the page was away: the game itself is here.
    const again = frame.code === "gone" && this.sid;
    if (again) {
      this.wire.sessions.delete(this.sid);
      this.open(this.variant);
    } else this.lost(frame.text);
  }

  lost(text) {
    this.wire.sessions.delete(this.sid);
    this.forget();
    this.on.closed?.(text);
  }

  /** A line for the engine; its number, 0 where there is no engine. */
  tell(text) {
    if (!this.sid) return 0;
    this.count += 1;
    this.wire.put({ t: "line", s: this.sid, n: this.count, text });
    return this.count;
  }

  set(name, value) {
    if (this.options[name] === value) return;
    this.options[name] = value;
    this.tell(`setoption name ${name} value ${value}`);
    if (name === "Player") delete this.options.SkillLevel; // a player brings options of its own
  }

  /** Who thinks: `level:3` or `player:NAME`; how many lines of play it gives. */
  choose(who, lines = 1) {
    const [kind, name] = who.split(/:(.*)/);
    this.set("Player", kind === "player" ? name : "default");
    this.set("SkillLevel", kind === "level" ? name : "10");
    // Levels begin with moves of the book, others in each game.
    this.set("OwnBook", String(kind === "level"));
    if (!("Seed" in this.options)) this.set("Seed", String(Math.floor(Math.random() * 2 ** 32)));
    this.set("MultiPV", String(lines));
  }

  play(variant) {
    if (!this.sid || chosen(this.variant) === chosen(variant)) return;
    this.variant = variant;
    this.tell(chosen(variant));
  }

  position(start, moves) {
    const where = start ? `fen ${start}` : "startpos";
    return this.tell(`position ${where}${moves.length ? ` moves ${moves.join(" ")}` : ""}`);
  }
}

/** The line by which an engine plays a variant; one that is not shipped has its rules in `words`. */
function chosen(variant) {
  return variant.words ? `rules switches ${variant.words}` : `variant ${variant.name}`;
}

/** What the server says of a position (a FEN, or a board in OpenTafl's notation that begins with a slash) by the rules
 *  of a variant: the promise of its state, which fails with the engine's sentence. An engine of its own is asked. */
export function examine(wire, variant, text) {
  return new Promise((resolve, reject) => {
    let asked = 0;
    const done = (act, value) => {
      session.close();
      act(value);
    };
    const session = new Session(wire, {
      opened: () => {
        asked = session.tell(`position ${text.startsWith("/") ? "otn" : "fen"} ${text}`);
      },
      state: (frame) => asked && frame.last_in >= asked && done(resolve, frame),
      complaint: (why) => done(reject, new Error(why)),
      closed: (why) => reject(new Error(why)),
    });
    session.open(variant);
  });
}
