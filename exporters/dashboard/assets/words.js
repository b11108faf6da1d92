// Texts for numbers, durations and states.

const NONE = "–";

// The states, worst first.
const RANK = ["open", "forced_open", "firing", "half_open", "recovering", "pending", "limiting", "shadow", "disabled", "forced_closed"];

export function rank(state) {
  const at = RANK.indexOf(state);
  return at < 0 ? RANK.length : at;
}

export function stateName(state) {
  return state === "" ? NONE : state.replaceAll("_", " ");
}

// figure formats a number in about four characters: 0.12, 3.4, 128, 12.3k.
export function figure(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  if (size >= 999.5e6) return `${short(value / 1e9)}G`;
  if (size >= 999.5e3) return `${short(value / 1e6)}M`;
  if (size >= 9999.5) return `${short(value / 1e3)}k`;
  return short(value);
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return String(Math.round(value));
  if (size >= 10) return String(Number(value.toFixed(1)));
  return String(Number(value.toPrecision(size < 0.01 ? 1 : 2)));
}

export function rate(value) {
  return value === null ? NONE : `${figure(value)}/s`;
}

export function percent(value) {
  if (value === null) return NONE;
  if (value > 0 && value < 0.001) return "<0.1 %";
  return `${Number((value * 100).toFixed(value < 0.1 ? 1 : 0))} %`;
}

// valueOf formats the value of an alert in its unit.
export function valueOf(value, unit) {
  if (unit === "ratio") return percent(value);
  return unit === "s" ? latency(value) : figure(value);
}

// latency formats a latency given in seconds.
export function latency(value) {
  if (value === null) return NONE;
  if (value < 0.001) return `${figure(value * 1e6)} µs`;
  if (value < 0.9995) return `${figure(value * 1e3)} ms`;
  return `${figure(value)} s`;
}

// span formats a duration given in milliseconds in its two largest units.
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [unit, size] = units[first];
  const rest = units[first + 1];
  const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
  return `${Math.floor(seconds / size)} ${unit}${more ? ` ${more} ${rest[0]}` : ""}`;
}

// ahead formats the time until a moment that is ms ahead.
export function ahead(ms) {
  return ms < 1000 ? "within a second" : `in ${span(ms + 999)}`;
}

// exact formats a number that was configured, without rounding.
export function exact(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 9 });
}

// limitText formats a limit as it was configured: 100/s, 60/min, 5 per 90 s, 100/s with a burst of 25. Of
// a limit without a period, only the most calls at once are known.
export function limitText({ limit, period, burst }) {
  return `${exact(limit)}${period ? perText(period) : " at once"}${burst ? ` with a burst of ${exact(burst)}` : ""}`;
}

function perText(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3], ["µs", 1e-6]];
  const [unit, size] = units.find(([, size]) => (size > 1 ? seconds % size === 0 : seconds >= size)) ?? units.at(-1);
  const n = Number((seconds / size).toPrecision(12));
  return n === 1 ? `/${unit}` : ` per ${exact(n)} ${unit}`;
}

// visible returns a name as it is shown. A name of which nothing would be seen becomes its code points.
export function visible(name) {
  if (!/^[\s\p{C}\p{M}\p{Z}]*$/u.test(name)) return name;
  const points = Array.from(name, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
  return name === "" ? "(no name)" : `(invisible: ${points.slice(0, 8).join(" ")}${points.length > 8 ? " …" : ""})`;
}

// lasted formats how long a row has been in its state, or how long its breaker has not been closed.
export function lasted(row, now) {
  if (row.down) return span(now - row.down);
  if (row.since === null) return NONE;
  return `${row.atMost ? "≤ " : ""}${span(now - row.since)}`;
}

// clock formats a time of day, with the date unless it is today.
export function clock(ms, now) {
  const at = new Date(ms);
  const time = at.toLocaleTimeString([], { hour12: false });
  return new Date(now).toDateString() === at.toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
