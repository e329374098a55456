// The page's one WebSocket: frames in and out, the sessions on it, and reconnecting to sessions that the server still
// has.

const FIRST_MS = 500;
const MOST_MS = 30000;

export class Wire {
  /** `on` = {welcome, status, token, error}: called for frames that belong to no session. */
  constructor(on) {
    this.on = on;
    this.sessions = new Map();
    this.opening = new Map(); // sessions by request number
    this.waiting = new Map(); // answers by request number
    this.streams = new Map(); // callbacks for repeated answers, by request number
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
    for (const { reject } of this.waiting.values()) reject(new Error("the connection was lost; try again"));
    for (const session of this.opening.values()) session.failed({ code: "lost", text: "The connection was lost." });
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
    else if (!frame.s) this.on.error(frame.text); // with `s` set, the session was abandoned
  }

  put(frame) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Send a request; returns a promise of the answer. */
  ask(frame) {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      if (this.put({ ...frame, id })) this.waiting.set(id, { resolve, reject });
      else reject(new Error("not connected; try again"));
    });
  }

  /** Send a request that has several answers. `each` receives them, or null and a reason; call the result to stop. */
  stream(frame, each) {
    const id = ++this.asked;
    this.streams.set(id, each);
    if (!this.put({ ...frame, id })) each(null, "not connected");
    return () => this.streams.delete(id);
  }

  /** Request an engine for a session; returns whether the request was sent. */
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
