// The data of the page: the last snapshot with all changes since.

const TRAIL = 60000; // ms
const OLD = 10000; // ms without new data after which it is old, or five samples if that is longer
const MAX_CHANGES = 100;

export class Model {
  constructor() {
    this.rows = new Map();
    this.alerts = new Map();
    this.notifiers = new Map();
    this.trails = new Map(); // by row ID: call rates of the last minute, newest last
    this.changes = []; // newest first
    this.faults = { panics: 0, skipped: 0 };
    this.at = 0; // the server's time at the last sample, in ms
    this.receivedAt = 0; // this browser's clock at that moment
    this.oldAfter = OLD;
    this.seq = 0;
  }

  // now is the server's time, which may differ from this browser's. It stands still while the data is old.
  get now() {
    return this.at + Math.min(this.age, this.oldAfter);
  }

  // age is how long ago the data was new, in ms.
  get age() {
    return this.seq ? Math.max(0, performance.now() - this.receivedAt) : 0;
  }

  // snapshot replaces all data and returns the changes of state that are new.
  snapshot(s) {
    const known = new Set(this.changes.map(key));
    const first = this.seq === 0;
    this.title = s.title;
    this.oldAfter = Math.max(OLD, 5 * s.interval);
    this.length = Math.round(TRAIL / s.interval);
    for (const part of ["rows", "alerts", "notifiers"]) this[part] = new Map(s[part].map((r) => [r.id, r]));
    this.trails = new Map(Object.entries(s.trails));
    this.changes = s.changes.slice().reverse();
    this.setStatus(s);
    return first ? [] : s.changes.filter((c) => !known.has(key(c)));
  }

  delta(d) {
    for (const part of ["rows", "alerts", "notifiers"]) {
      for (const r of d[part] ?? []) this[part].set(r.id, r);
      for (const id of d.gone ?? []) this[part].delete(id);
    }
    for (const id of d.gone ?? []) this.trails.delete(id);
    for (const row of this.rows.values()) this.extend(row);
    const news = d.changes ?? [];
    this.changes = [...news.slice().reverse(), ...this.changes].slice(0, MAX_CHANGES);
    this.setStatus(d);
    return news;
  }

  setStatus(message) {
    if (message.at !== this.at) this.receivedAt = performance.now();
    this.seq = message.seq;
    this.at = message.at;
    this.faults = message.faults;
  }

  // extend adds the latest call rates of a row. A row that is not in a delta has the same rates as before.
  extend(row) {
    let trail = this.trails.get(row.id);
    if (!trail) {
      if (!row.callRates[0] && !row.callRates[1]) return;
      this.trails.set(row.id, (trail = []));
    }
    trail.push(row.callRates);
    if (trail.length > this.length) trail.shift();
  }
}

function key(change) {
  return `${change.seq} ${change.id}`;
}
