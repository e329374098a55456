// A session with an engine process on the server: numbered lines to it, so that none is lost, and its output.

/** A search answers with the number that `tell("go …")` returned; any other number belongs to an abandoned search. */
export class Session {
  /** `on` = {opened, state, reports, bestmove, compiling, solved, complaint, closed}, all optional. */
  constructor(wire, on) {
    this.wire = wire;
    this.on = on;
    this.forget();
  }

  forget() {
    this.sid = null;
    this.opening = false;
    this.heard = this.count = 0;
    this.options = {}; // values already sent
    this.variant = null;
  }

  /** Request an engine, unless a request is pending. */
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
    // The server may have dropped the session while the page was offline; the page still has the game.
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

  /** Send a line to the engine; returns its number, 0 if there is no engine. */
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
    if (name === "Player") delete this.options.SkillLevel; // a player sets options of its own
  }

  /** Choose who searches (`level:3` or `player:NAME`) and how many lines it reports. */
  choose(who, lines = 1) {
    const [kind, name] = who.split(/:(.*)/);
    this.set("Player", kind === "player" ? name : "default");
    this.set("SkillLevel", kind === "level" ? name : "10");
    // Levels open from the book, with different moves in each game.
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

/** The command that selects a variant; custom rules are in `words`. */
function chosen(variant) {
  return variant.words ? `rules switches ${variant.words}` : `variant ${variant.name}`;
}

/** Check a position (a FEN, or OpenTafl notation, which begins with a slash) under the rules of a variant. Returns a
 *  promise of its state; a rejection carries the engine's message. Uses an engine of its own. */
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
