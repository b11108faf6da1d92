// The answers about a source in trouble, in words.

import { ahead, clock, count, latency, limitText, percent, rank, rate, span, stateName, valueOf, visible } from "./words.js";

export function inTrouble(row) {
  return Boolean(row.down || row.trouble);
}

// severityOf ranks sources in trouble, the worst first.
export function severityOf(row) {
  if (row.down) return rank(row.state);
  return { held: 20, full: 21, limited: 22, failing: 23, slow: 24 }[row.trouble] ?? 25;
}

const SAYS = {
  open: "All calls are refused.",
  forced_open: "All calls are refused, by hand.",
  half_open: "Calls are refused, except probes.",
  recovering: "A share of the calls is refused.",
};

// headline returns the state to show as a badge, and a sentence.
export function headline(row) {
  if (row.down) return { state: row.state, word: stateName(row.state), says: SAYS[row.state] ?? "" };
  switch (row.trouble) {
    case "held": return { state: "limiting", word: "held", says: "The service has asked not to be called." };
    case "full": return { state: "limiting", word: "full", says: "Further keys have no room." };
    case "limited": return { state: "limiting", word: "limit used up", says: "Calls beyond the limit are refused or wait." };
    case "slow": return { state: "pending", word: "slow", says: "Calls pass, and many are slow." };
    default: return { state: "pending", word: "failing", says: "Calls pass, and many fail." };
  }
}

// answersOf returns pairs of a question and its answer, about one source or about several with one cause.
export function answersOf(rows, now) {
  const [row] = rows;
  if (rows.length === 1) {
    return [["Since", since(row, now)], ["Why", why(row)], ["Last error", lastError(row, now)], ["Next", next(row, now)], ["Affected", affected(row)]];
  }
  const began = (r) => r.down ?? r.troubleSince ?? now;
  const first = rows.reduce((a, b) => (began(b) < began(a) ? b : a));
  const newest = rows.reduce((a, b) => ((b.lastErrorAt ?? 0) > (a.lastErrorAt ?? 0) ? b : a));
  const soonest = rows.reduce((a, b) => ((b.probe ?? Infinity) < (a.probe ?? Infinity) ? b : a));
  const refused = rows.reduce((sum, r) => sum + (r.refused ?? 0), 0);
  return [
    ["Since", `${began(first) === now ? "" : `${clock(began(first), now)}${first.down || !first.troubleAtLeast ? "" : " or earlier"}, for ${span(now - began(first))}`}`],
    ["Why", newest.lastError ? `all have the same last error, such as ${visible(newest.key || newest.name)}` : why(newest)],
    ["Last error", lastError(newest, now)],
    ["Next", `first of them: ${next(soonest, now)}`],
    ["Affected", `all calls through these ${rows.length} sources${refused ? `; ${rate(refused)} refused` : ""}`],
  ];
}

// causeOf identifies the cause of a trouble. Sources have one cause if they fail with the same error,
// apart from its numbers and their own names. A limit is a cause of its own.
export function causeOf(row) {
  let says = row.lastError || row.cause;
  if (!says || ["limited", "held", "full"].includes(row.trouble)) return row.id;
  for (const own of [row.name, row.key]) {
    if (own?.length > 2) says = says.replaceAll(own, "");
  }
  return `${row.down ? "down" : row.trouble} ${says.replace(/ after [\d.]+ [^:(]+/, "").replace(/\d+/g, "#")}`;
}

function lastError(row, now) {
  if (!row.lastError) return "";
  return row.lastErrorAt ? `${clock(row.lastErrorAt, now)} ${row.lastError}` : row.lastError;
}

function since(row, now) {
  if (row.down) {
    const again = row.openings > 1 ? `, opened ${row.openings} times since` : "";
    return `${clock(row.down, now)}, for ${span(now - row.down)}${again}${flapping(row, now)}`;
  }
  if (!row.troubleSince) return "";
  return `${clock(row.troubleSince, now)}${row.troubleAtLeast ? " or earlier" : ""}, for ${row.troubleAtLeast ? "at least " : ""}${span(now - row.troubleSince)}`;
}

function flapping(row, now) {
  return row.incidents > 1 ? `; ${count(row.incidents, "incident")} in ${span(now - row.firstBegan)}` : "";
}

function why(row) {
  const parts = [];
  if (row.down) {
    parts.push(short(row.cause ?? "", row));
    if (row.reason && row.reason !== row.cause) parts.push(`latest: ${short(row.reason, row)}`);
  } else if (row.trouble === "limited" || row.trouble === "held") {
    const limit = row.limit ? `the limit of ${limitText(row)}` : "the limit";
    parts.push(row.trouble === "held" ? "the service said when to retry" : `${limit} is used up: ${rate(row.rate)} pass, ${rate(row.refused)} are refused`);
  }
  if (row.trouble === "full") {
    const lack = [row.unguarded ? `${count(row.unguarded, "call")} without a breaker` : "", row.noRoom ? `${count(row.noRoom, "request")} without room` : ""];
    parts.push(`as many keys as MaxKeys are in use; since then ${lack.filter(Boolean).join(", ")}`);
  }
  if (row.trouble === "failing") parts.push(`${percent(row.failureRate)} of the calls fail`);
  if (row.slow && row.trouble !== "limited") parts.push(`${percent(row.slow)} of the calls ${row.slowCall ? `take longer than ${latency(row.slowCall)}` : "are slow"}, limit ${percent(row.slowLimit)}`);
  return parts.filter(Boolean).join("; ");
}

// short returns a reason without the statistics of a run of failures, which the view of a source shows,
// and says which calls are slow.
function short(reason, row) {
  const slow = row.slowCall ? `$1 of $2 calls took longer than ${latency(row.slowCall)}` : "$&";
  return reason.replace(/, by chance less than once in \S+ calls if \S+% fail/, "").replace(/^slow rate (\S+%) of (\d+) calls/, slow);
}

function next(row, now) {
  const until = (at) => (at > now ? ahead(at - now) : "with the next call");
  if (row.down) {
    switch (row.state) {
      case "open": return row.probe ? `a probe ${until(row.probe)}, at ${clock(row.probe, now)}; until then every call is refused` : "open until it is changed by hand";
      case "half_open": return row.probes ? `probing now: ${count(row.probes, "result")} so far` : "the next calls are probes; if they succeed, more calls pass";
      case "recovering": return row.oneOf > 1 ? `${percent(1 / row.oneOf)} of the calls pass (1 of ${row.oneOf}), more while they go well` : "all calls pass; it closes if they go well";
      case "forced_open": return "open until it is released by hand";
      default: return "";
    }
  }
  if (row.trouble === "full") return "a further key gets room when a key has become idle";
  if (row.trouble === "limited" || row.trouble === "held") {
    return row.free ? `the next call can pass ${row.free > now ? ahead(row.free - now) : "now"}` : "calls pass as the limit becomes free";
  }
  const limit = row.trouble === "slow" ? row.slowLimit : row.threshold;
  return limit ? `opens at ${percent(limit)}, then all calls are refused` : "";
}

function affected(row) {
  let calls = row.refused ? `; ${rate(row.refused)} refused` : "";
  if (!row.down && row.trouble === "failing") calls += `; about ${rate(row.rate * row.failureRate)} fail`;
  if (!row.down && row.trouble === "slow") calls += `; about ${rate(row.rate * row.slow)} slow`;
  if (row.key) return `calls for ${visible(row.key)}, a key of ${row.name.slice(0, -row.key.length).replace(/ \/ $/, "")}${calls}`;
  const name = visible(row.name);
  if (row.trouble === "full") return `calls for further keys${calls}`;
  return `all calls through ${name.length > 80 ? `${name.slice(0, 40)}…${name.slice(-30)}` : name}${calls}`;
}

// valueText returns the value of an alert beside its threshold.
export function valueText({ value, unit, threshold, below, noData }) {
  const limit = threshold === null || threshold === undefined ? "" : `fires ${below ? "below" : "above"} ${valueOf(threshold, unit)}`;
  if (noData) return [`no data: ${noData}`, limit].filter(Boolean).join(", ");
  return value === null ? limit : [`value ${valueOf(value, unit)}`, limit].filter(Boolean).join(", ");
}
