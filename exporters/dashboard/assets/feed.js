// The source of the data: a stream of events, or polled snapshots if there is no stream. While the page
// is hidden it requests nothing, so that the sources are not sampled.

const TRY_AGAIN = [1000, 2000, 5000, 10000]; // ms; the last one repeats
const POLL_AT_LEAST = 2000; // ms

export class Feed {
  // on has snapshot(s), delta(d) and status(kind, text).
  constructor(on) {
    this.on = on;
    this.failures = 0;
    this.interval = 1000;
    this.tag = null; // ETag of the last polled snapshot
  }

  start() {
    document.addEventListener("visibilitychange", () => this.resume());
    addEventListener("pagehide", () => this.pause());
    addEventListener("pageshow", () => this.resume());
    this.resume();
  }

  resume() {
    if (document.hidden) return this.pause();
    if (!this.source && !this.retry) this.connect();
  }

  pause() {
    this.disconnect();
    this.on.status("paused", "Paused");
  }

  disconnect() {
    this.source?.close();
    this.source = null;
    for (const timer of [this.retry, this.poll, this.watch]) clearTimeout(timer);
    this.retry = this.poll = this.watch = null;
    this.asking?.abort();
  }

  connect() {
    this.retry = null;
    const source = new EventSource("stream");
    this.source = source;
    source.addEventListener("snapshot", (e) => this.heard(() => this.snapshot(JSON.parse(e.data))));
    source.addEventListener("delta", (e) => this.heard(() => this.on.delta(JSON.parse(e.data))));
    source.addEventListener("error", () => this.fail());
    this.expect();
  }

  heard(take) {
    this.failures = 0;
    clearTimeout(this.poll);
    this.poll = null;
    take();
    this.on.status("live", "Live");
    this.expect();
  }

  // expect gives up a stream without events, because a proxy may be buffering them.
  expect() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.fail(), Math.max(5000, 5 * this.interval));
  }

  // fail reconnects later and polls snapshots until then. The browser's own reconnection would end at the
  // first response that is not a stream, such as a 503.
  fail() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.watch);
    const wait = TRY_AGAIN[Math.min(this.failures, TRY_AGAIN.length - 1)];
    this.failures++;
    this.retry = setTimeout(() => this.connect(), wait);
    if (!this.poll) this.ask();
  }

  async ask() {
    this.poll = setTimeout(() => this.ask(), Math.max(POLL_AT_LEAST, this.interval));
    this.asking?.abort();
    this.asking = new AbortController();
    const signal = this.asking.signal;
    try {
      const answer = await fetch("snapshot.json", {
        cache: "no-store", signal, headers: this.tag ? { "If-None-Match": this.tag } : {},
      });
      if (answer.status === 200) {
        const s = await answer.json();
        this.tag = answer.headers.get("ETag");
        if (signal.aborted || !this.poll) return; // a stream has started meanwhile
        this.snapshot(s);
      } else if (answer.status !== 304) {
        throw new Error(answer.statusText);
      }
      this.on.status("polling", "Polling");
    } catch {
      if (!signal.aborted && !document.hidden) this.on.status("lost", "Connection lost, reconnecting");
    }
  }

  snapshot(s) {
    this.interval = s.interval;
    this.on.snapshot(s);
  }
}
