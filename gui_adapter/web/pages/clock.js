// The clocks of both sides, kept by the page.

export class Clock {
  constructor(ms, increment) {
    this.left = [ms, ms];
    this.increment = increment;
    this.running = null; // {side, since}
  }

  start(side) {
    this.running ??= { side, since: performance.now() };
  }

  stop() {
    if (!this.running) return;
    this.left["ad".indexOf(this.running.side)] = this.leftOf(this.running.side);
    this.running = null;
  }

  /** Stop the clock of the side that moved and add its increment. */
  moved(side) {
    this.stop();
    this.left["ad".indexOf(side)] += this.increment;
  }

  leftOf(side) {
    const gone = this.running?.side === side ? performance.now() - this.running.since : 0;
    return this.left["ad".indexOf(side)] - gone;
  }

  /** The side that has run out of time; null if neither has. */
  get lost() {
    return this.running && this.leftOf(this.running.side) <= 0 ? this.running.side : null;
  }

  /** The limits for `go`. */
  get limits() {
    const [a, d] = this.left.map((ms) => Math.max(1, Math.round(ms)));
    return `atime ${a} dtime ${d} ainc ${this.increment} dinc ${this.increment}`;
  }
}
