// The view of one source: its state, its history in charts, its changes and all its metrics.

import { Busiest } from "./busiest.js";
import { Chart, Strip } from "./chart.js";
import { badge, el, keep, name, set, text } from "./dom.js";
import { inTrouble, valueText } from "./answers.js";
import { Incidents, Settings } from "./past.js";
import { changeItem } from "./overview.js";
import { Answers } from "./problems.js";
import { ahead, clock, exact, figure, lasted, latency, percent, rate, span, stateName, valueOf, visible } from "./words.js";

const CALLS = {
  title: "Calls per second", format: rate,
  lines: [
    { key: "passed", name: "successful", look: "good" },
    { key: "failed", name: "failed", look: "bad" },
    { key: "refused", name: "refused", look: "refused" },
  ],
};
const FAILURES = {
  title: "Failure rate", format: percent, least: 0.1, most: 1, height: 120,
  lines: [{ key: "value", name: "in the breaker's window", look: "bad" }],
};
const LATENCY = {
  title: "Latency", format: latency, height: 120,
  lines: [{ key: "p50", name: "p50", look: "good" }, { key: "p99", name: "p99", look: "slow" }],
};
const VALUE = { title: "Value", format: figure, lines: [{ key: "value", name: "at the last evaluation", look: "good" }] };

export class SourceView {
  constructor(id) {
    this.id = id;
    this.cursor = null;
    this.build();
  }

  build() {
    this.title = el("h1", { tabindex: "-1" });
    this.kind = el("span", { class: "kind" });
    this.state = badge();
    this.since = el("span", { class: "more" });
    this.tiles = el("dl", { class: "tiles" });
    this.answers = new Answers();
    this.strip = new Strip();
    const move = (time) => {
      this.cursor = time;
      this.drawCharts();
    };
    this.charts = { calls: [CALLS], failures: [FAILURES], latency: [LATENCY], value: [VALUE] };
    for (const [key, [options]] of Object.entries(this.charts)) this.charts[key] = new Chart({ ...options, move });
    this.historyPanel = el("section", { class: "panel" }, el("h2", {}, "History"), this.strip.node, ...Object.values(this.charts).map((c) => c.node));
    this.items = new Map();
    this.changes = el("ul", { class: "list", tabindex: "0", "aria-label": "Changes" });
    this.quiet = el("p", { class: "empty" }, "None since this page was opened.");
    this.changed = el("section", { class: "panel" }, el("h2", {}, "Changes"), this.changes, this.quiet);
    this.reason = el("p", { class: "reason" });
    this.failures = el("ul", { class: "list", tabindex: "0", "aria-label": "Last failures" });
    this.why = el("section", { class: "panel", hidden: "" }, el("h2", {}, "Why calls are refused"), this.reason, this.failures);
    this.busiest = new Busiest();
    this.incidents = new Incidents();
    this.settings = new Settings();
    this.metrics = el("dl", { class: "metrics" });
    this.lost = el("p", { class: "notice", hidden: "" }, "This source has been removed. The page shows its last known data.");
    this.node = el("div", { class: "source" },
      el("p", { class: "crumbs" }, el("a", { href: "#" }, "← All sources")), this.lost,
      el("section", { class: "panel headline" }, el("div", { class: "bar" }, this.title, this.kind, this.state.node, this.since), this.answers.node, this.tiles),
      this.why, this.busiest.node, this.settings.node,
      el("div", { class: "columns" }, this.historyPanel, el("div", { class: "side" }, this.incidents.node, this.changed)),
      el("section", { class: "panel" }, el("h2", {}, "All metrics"), this.metrics));
  }

  // refresh fetches the source, unless a request is in progress.
  async refresh(model) {
    if (this.asking) return;
    this.asking = true;
    try {
      const answer = await fetch(`source.json?id=${encodeURIComponent(this.id)}`, { cache: "no-cache" });
      this.lost.hidden = answer.status !== 404;
      if (answer.status === 404 && !this.data) text(this.title, "No such source");
      if (answer.ok) this.show(await answer.json(), model.now);
    } catch {
      // The feed reports the lost connection.
      if (!this.data) text(this.title, "No data: the server does not answer");
    } finally {
      this.asking = false;
    }
  }

  show(data, now) {
    const first = !this.data;
    this.data = data;
    const main = data.row ?? data.alert;
    if (first) {
      this.title.replaceChildren(name(data.name));
      set(this.title, "tabindex", this.title.scrollHeight > this.title.clientHeight ? "0" : "-1"); // to scroll a long name
      document.title = `${visible(data.name).slice(0, 60)} · weir`;
    }
    text(this.kind, [data.row?.kind ?? data.class, data.severity].filter(Boolean).join(" · "));
    const state = main?.state ?? "";
    this.state.node.hidden = !state;
    this.state.show(state, stateName(state));
    text(this.since, main && main.since !== null ? `for ${lasted(main, now)}` : "");
    this.answers.node.hidden = !data.row || !inTrouble(data.row);
    if (!this.answers.node.hidden) this.answers.show(data.row, now);
    this.showTiles();
    this.showWhy(now);
    this.incidents.show(data.incidents, now);
    this.settings.show(data.settings);
    this.busiest.show(data.busiest);
    this.drawCharts();
    this.showChanges(now);
    this.showMetrics();
  }

  showTiles() {
    const { row, alert, reopens, waiting, available, limit, inFlight, maxFlight } = this.data;
    const tiles = [];
    if (row && this.data.class === "calls") {
      tiles.push(["Rate", rate(row.rate)], ["Refused", rate(row.refused)]);
      if (row.kind !== "limiter") tiles.push(["Failing", percent(row.failureRate), row.threshold === null ? "" : `opens at ${percent(row.threshold)}`]);
      if (row.slow !== undefined) tiles.push(["Slow", percent(row.slow), `opens at ${percent(row.slowLimit)}`]);
      if (reopens !== null) tiles.push(["Half-open", ahead(reopens * 1000)]);
      if (row.p50 !== null) tiles.push(["p50", latency(row.p50)], ["p99", latency(row.p99)]);
      if (limit !== null) tiles.push(["Available", figure(available), `of ${exact(limit)} at once`]);
      if (maxFlight !== null) tiles.push(["In flight", figure(inFlight), `of ${figure(maxFlight)}`]);
      if (waiting) tiles.push(["Waiting", figure(waiting)]);
    } else if (alert) {
      tiles.push(["Value", valueOf(alert.value, alert.unit), valueText({ ...alert, value: null })], ["Firing", figure(alert.firing), alert.worst], ["Pending", figure(alert.pending)]);
    }
    this.tiles.replaceChildren(...tiles.map(([label, value, more = ""]) =>
      el("div", {}, el("dt", {}, label), el("dd", {}, el("b", {}, value), ...(more ? [el("span", { class: "more" }, more)] : [])))));
    this.tiles.hidden = tiles.length === 0;
  }

  // showWhy shows the reason and, the newest first, the failures that the breaker kept.
  showWhy(now) {
    const [reason, ...lines] = (this.data.why ?? "").split("\n");
    const failures = [...(this.data.failures ?? []).map((f) => `${clock(f.at, now)} ${f.text}`), ...lines];
    this.why.hidden = !reason;
    text(this.reason, reason);
    this.failures.hidden = failures.length === 0;
    if (this.failures.textContent !== failures.join("")) this.failures.replaceChildren(...failures.map((f) => el("li", {}, el("bdi", {}, f))));
  }

  drawCharts() {
    const { history, row } = this.data;
    const calls = this.data.class === "calls";
    const has = {
      calls, value: this.data.class === "alert",
      failures: calls && row.kind !== "limiter",
      latency: calls && history.p50.some((v) => v !== null),
    };
    this.historyPanel.hidden = !calls && !has.value;
    this.strip.node.hidden = !history.state.some(Boolean);
    if (!this.strip.node.hidden) this.strip.show(history, this.data);
    for (const [key, chart] of Object.entries(this.charts)) {
      chart.node.hidden = !has[key];
      if (has[key]) chart.show(history, this.data, this.cursor, key === "failures" ? row.threshold : null);
    }
  }

  showChanges(now) {
    const list = this.data.changes.slice().reverse();
    this.items = new Map(list.map((c) => [c.seq, this.items.get(c.seq) ?? changeItem(false)]));
    for (const c of list) this.items.get(c.seq).show(c, now);
    keep(this.changes, [...this.items.values()].map((item) => item.node));
    this.changes.hidden = list.length === 0;
    this.quiet.hidden = list.length > 0;
    this.changed.hidden = this.historyPanel.hidden;
  }

  // showMetrics lists each instrument once, with the values of its series.
  showMetrics() {
    const groups = Map.groupBy(this.data.metrics, (f) => f.instrument);
    const made = this.made ?? new Map();
    this.made = new Map([...groups].map(([instrument, [first]]) => [instrument, made.get(instrument) ?? metricItem(first)]));
    for (const [instrument, item] of this.made) item.show(groups.get(instrument));
    keep(this.metrics, [...this.made.values()].map((item) => item.node));
  }
}

function metricItem(metric) {
  const values = el("dd");
  return {
    node: el("div", {}, el("dt", {}, metric.instrument, el("span", { class: "more" }, metric.help)), values),
    show(metrics) {
      keep(values, metrics.map((f, i) => {
        const node = values.children[i] ?? el("span", { class: "value" }, el("span", { class: "more" }), el("b"));
        text(node.firstChild, f.attrs.map(([, value]) => stateName(value)).join(", "));
        text(node.lastChild, plain(f));
        set(node, "data-zero", f.value === 0);
        return node;
      }));
    },
  };
}

// plain formats a value in full.
function plain({ instrument, value, unit }) {
  if (value === null) return "–";
  if (instrument.endsWith(".timestamp")) return value ? new Date(value * 1000).toLocaleString() : "never";
  const n = value.toLocaleString("en", { maximumFractionDigits: 4 });
  return unit === "s" ? `${n} s` : n;
}
