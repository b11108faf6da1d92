// Where the figures come from: a stream of events while there is one to be had, and
// snapshots asked for now and then where there is not. Nothing is asked for while
// the page is hidden, so that nothing is sampled for nobody.

const TRY_AGAIN = [1000, 2000, 5000, 10000]; // ms, the last one ever after
const POLL_AT_LEAST = 2000; // ms

export class Feed {
  // on has snapshot(s), delta(d) and status(kind, text).
  constructor(on) {
    this.on = on;
    this.failures = 0;
    this.interval = 1000;
    this.tag = null; // of the last snapshot asked for
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

  // expect gives up a stream that says nothing: something may hold its events back.
  expect() {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.fail(), Math.max(5000, 5 * this.interval));
  }

  // fail tries again later, and asks for snapshots until then. The browser's own way
  // of trying again ends at the first answer that is no stream, such as a 503.
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
        if (signal.aborted || !this.poll) return; // a stream has come meanwhile
        this.snapshot(s);
      } else if (answer.status !== 304) {
        throw new Error(answer.statusText);
      }
      this.on.status("polling", "Polling");
    } catch {
      if (!signal.aborted && !document.hidden) this.on.status("lost", "Connection lost, trying again");
    }
  }

  snapshot(s) {
    this.interval = s.interval;
    this.on.snapshot(s);
  }
}
