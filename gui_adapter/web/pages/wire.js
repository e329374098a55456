// The one WebSocket of the page: frames in and out, and connecting again with what the server still has.

const FIRST_MS = 500;
const MOST_MS = 30000;

export class Wire {
  /** `on` = {welcome, frame, status, token}: called with what comes. */
  constructor(on) {
    this.on = on;
    this.sid = null;
    this.heard = 0;
    this.count = 0;
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
    const resume = this.sid ? { [this.sid]: this.heard } : {};
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
    this.on.status(false);
    setTimeout(() => this.connect(), this.pause * (0.8 + Math.random() * 0.4));
    this.pause = Math.min(MOST_MS, this.pause * 2);
  }

  take(frame) {
    if (frame.t === "error" && frame.code === "token") this.refused = true;
    if (frame.t === "welcome") {
      this.pause = FIRST_MS;
      this.on.status(true);
      this.on.welcome(frame);
      return;
    }
    if (frame.s && frame.s !== this.sid && frame.t !== "opened") return; // of a game that was left
    if (frame.t === "line") this.heard = frame.m;
    this.on.frame(frame);
  }

  put(frame) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  /** A line for the engine; returns its number. */
  line(text) {
    this.count += 1;
    this.put({ t: "line", s: this.sid, n: this.count, text });
    return this.count;
  }
}
