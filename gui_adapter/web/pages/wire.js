// The one WebSocket of the page: frames in and out, the sessions that live on it, and connecting again with what the
// server still has.

const FIRST_MS = 500;
const MOST_MS = 30000;

export class Wire {
  /** `on` = {welcome, status, token, error}: called with what concerns no session. */
  constructor(on) {
    this.on = on;
    this.sessions = new Map();
    this.opening = new Map(); // sessions by the number of the request
    this.waiting = new Map(); // answers by the number of the request
    this.streams = new Map(); // what hears of several answers, by the number of the request
    this.asked = 0;
    this.token = "";
    this.pause = FIRST_MS;
    this.refused = false;
    this.connect();
  }

  connect() {
    const url = new URL("ws", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.hash = "";
    this.socket = new WebSocket(url);
    this.socket.addEventListener("open", () => this.hello());
    this.socket.addEventListener("message", (event) => this.take(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => this.closed());
  }

  hello() {
    const resume = Object.fromEntries([...this.sessions].map(([sid, session]) => [sid, session.heard]));
    this.put({ t: "hello", token: this.token, resume });
  }

  closed() {
    if (this.refused) {
      this.refused = false;
      this.on.token((token) => {
        this.token = token;
        this.connect();
      });
      return;
    }
    for (const { reject } of this.waiting.values()) reject(new Error("the connection was lost: expected another try"));
    for (const session of this.opening.values()) session.failed({ code: "lost", text: "The connection is lost." });
    for (const each of this.streams.values()) each(null, "the connection was lost");
    this.waiting.clear();
    this.opening.clear();
    this.streams.clear();
    this.on.status(false);
    setTimeout(() => this.connect(), this.pause * (0.8 + Math.random() * 0.4));
    this.pause = Math.min(MOST_MS, this.pause * 2);
  }

  take(frame) {
    if (frame.t === "error") this.failed(frame);
    else if (frame.t === "welcome") {
      this.pause = FIRST_MS;
      this.on.status(true);
      this.on.welcome(frame);
    } else if (frame.t === "opened") {
      const session = this.opening.get(frame.id);
      this.opening.delete(frame.id);
      if (session) this.sessions.set(frame.s, session);
      session?.opened(frame.s);
    } else if (frame.s) this.sessions.get(frame.s)?.take(frame);
    else if (this.streams.has(frame.id)) this.streams.get(frame.id)(frame);
    else {
      this.waiting.get(frame.id)?.resolve(frame);
      this.waiting.delete(frame.id);
    }
  }

  failed(frame) {
    if (frame.code === "token") this.refused = true;
    const waiting = this.waiting.get(frame.id);
    const session = this.opening.get(frame.id) ?? this.sessions.get(frame.s);
    this.waiting.delete(frame.id);
    this.opening.delete(frame.id);
    const stream = this.streams.get(frame.id);
    if (stream) stream(null, frame.text);
    else if (waiting) waiting.reject(new Error(frame.text));
    else if (session) session.failed(frame);
    else if (!frame.s) this.on.error(frame.text); // with a name: of a session that was left
  }

  put(frame) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** The promise of an answer. */
  ask(frame) {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      if (this.put({ ...frame, id })) this.waiting.set(id, { resolve, reject });
      else reject(new Error("there is no connection: expected another try"));
    });
  }

  /** Ask for what has several answers: `each` hears them, or null and the reason; what is returned ends that. */
  stream(frame, each) {
    const id = ++this.asked;
    this.streams.set(id, each);
    if (!this.put({ ...frame, id })) each(null, "there is no connection");
    return () => this.streams.delete(id);
  }

  /** Ask for an engine for a session; whether that could be asked. */
  open(session, variant) {
    const id = ++this.asked;
    const sent = this.put({ t: "open", id, variant });
    if (sent) this.opening.set(id, session);
    return sent;
  }

  close(sid) {
    this.sessions.delete(sid);
    this.put({ t: "close", s: sid });
  }
}
