// The first view: the table of sources, and next to it the alerts, the notifiers and the recent changes.

import { badge, cutName, el, keep, name, set, text } from "./dom.js";
import { valueText } from "./answers.js";
import { Problems, isBlind, notifierTrouble } from "./problems.js";
import { Table } from "./table.js";
import { clock, count, figure, lasted, rank, span, stateName, visible } from "./words.js";

export class Overview {
  constructor(model) {
    this.model = model;
    this.table = new Table(model);
    this.problems = new Problems(model);
    this.alerts = new List("Alerts", (id) => alertItem(id));
    this.notifiers = new List("Notifiers", () => notifierItem());
    this.incidents = new List("Incidents that are over", (id) => incidentItem(id));
    this.changes = new List("Recent changes", () => changeItem());
    this.chips = new Map(); // by state
    this.build();
  }

  build() {
    this.search = el("input", {
      type: "search", placeholder: "Search (press /)", "aria-label": "Search sources by name, kind or state",
      autocomplete: "off", spellcheck: "false", enterkeyhint: "search",
    });
    this.search.addEventListener("input", () => this.table.search({ text: this.search.value }));
    this.search.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.find("");
    });
    this.summary = el("div", { class: "chips", role: "group", "aria-label": "Show only sources in a state" });
    this.quiet = el("p", { class: "empty" }, "None since this page was opened.");
    this.changes.node.append(this.quiet);
    this.node = el("div", { class: "overview", hidden: "" }, // until there is data
      el("div", { class: "main" }, this.problems.node,
        el("section", { class: "panel" }, el("div", { class: "bar" }, el("h1", {}, "Sources"), this.summary, this.search), this.table.node)),
      el("div", { class: "aside" }, this.alerts.node, this.incidents.node, this.changes.node, this.notifiers.node));
  }

  // find searches for a text.
  find(what) {
    this.search.value = what;
    this.table.search({ text: what });
  }

  show() {
    const { alerts, notifiers, rows, now } = this.model;
    const changes = folded(this.model.changes);
    this.node.hidden = false;
    this.table.show();
    this.problems.show();
    this.showChips();
    const ended = [...rows.values()].filter((r) => r.lastEnded).sort((a, b) => b.lastEnded - a.lastEnded).slice(0, 10);
    this.incidents.show(ended.map((r) => [r.id, r]), now);
    this.incidents.node.hidden = ended.length === 0;
    const worst = [...alerts.values()].sort((a, b) => rank(a.state) - rank(b.state) || (a.name < b.name ? -1 : 1));
    this.alerts.show(worst.map((a) => [a.id, a]), now);
    this.notifiers.show([...notifiers.values()].map((n) => [n.id, n]), now);
    this.changes.show(changes.slice(0, 20).map((c) => [`${c.seq} ${c.id}`, c]), now);
    this.alerts.node.hidden = alerts.size === 0;
    this.notifiers.node.hidden = notifiers.size === 0;
    this.quiet.hidden = changes.length > 0;
  }

  showChips() {
    const states = new Map([["", this.model.rows.size]]);
    for (const { state } of this.model.rows.values()) {
      if (state) states.set(state, (states.get(state) ?? 0) + 1);
    }
    const chosen = this.table.filter.state;
    if (chosen && !states.has(chosen)) states.set(chosen, 0);
    const sorted = [...states].sort(([a], [b]) => (a === "" ? -1 : b === "" ? 1 : rank(a) - rank(b) || (a < b ? -1 : 1)));
    keep(this.summary, sorted.map(([state, n]) => {
      const chip = this.chip(state);
      set(chip.button, "aria-pressed", String(state === chosen));
      const says = state === "" ? `all ${n.toLocaleString("en")}` : `${n.toLocaleString("en")} ${stateName(state)}`;
      if (chip.label) chip.label.show(state, says);
      else text(chip.button, says);
      return chip.button;
    }));
  }

  chip(state) {
    if (!this.chips.has(state)) {
      const label = state === "" ? null : badge();
      const button = el("button", { type: "button", class: "chip" }, ...(label ? [label.node] : []));
      button.addEventListener("click", () => {
        this.table.search({ state: this.table.filter.state === state ? "" : state });
        this.showChips();
      });
      this.chips.set(state, { button, label });
    }
    return this.chips.get(state);
  }
}

// List is a panel with a list. An item keeps its element as long as its ID is shown.
class List {
  constructor(title, make) {
    this.make = make;
    this.items = new Map();
    this.list = el("ul", { class: "list" });
    this.node = el("section", { class: "panel" }, el("h2", {}, title), this.list);
  }

  show(entries, now) {
    this.items = new Map(entries.map(([id]) => [id, this.items.get(id) ?? this.make(id)]));
    for (const [id, value] of entries) this.items.get(id).show(value, now);
    keep(this.list, [...this.items.values()].map((item) => item.node));
    this.list.hidden = entries.length === 0;
  }
}

// folded returns the newest change of each source, with the number of changes that it stands for and the
// time of the oldest, so that a source that flaps takes one row.
function folded(changes) {
  const bySource = new Map();
  for (const c of changes) {
    const times = 1 + (c.by ?? []).reduce((n, visit) => n + visit.times, 0);
    const newest = bySource.get(c.id);
    if (!newest) bySource.set(c.id, { ...c, changes: times, oldest: c.at });
    else Object.assign(newest, { changes: newest.changes + times, oldest: c.at });
  }
  return [...bySource.values()];
}

// incidentItem shows the last incident of a source, and how many there were.
function incidentItem(id) {
  const link = el("a", { href: `#${id}` });
  const when = el("span", { class: "more" });
  const cause = el("bdi");
  return {
    node: el("li", {}, el("span", { class: "what" }, link, when, el("span", { class: "more" }, cause))),
    show(r, now) {
      if (link.textContent !== visible(r.name)) link.replaceChildren(cutName(r.name));
      const several = r.incidents > 1 ? `${count(r.incidents, "incident")} since ${clock(r.firstBegan, now)}; last ` : "";
      text(when, `${several}${clock(r.lastBegan, now)} to ${clock(r.lastEnded, now)}, ${span(r.lastEnded - r.lastBegan)}`);
      text(cause, r.cause ?? "");
    },
  };
}

function alertItem(id) {
  const state = badge();
  const link = el("a", { href: `#${id}` });
  const more = el("span", { class: "more" });
  return {
    node: el("li", {}, state.node, el("span", { class: "what" }, link, more)),
    show(alert, now) {
      if (isBlind(alert) && alert.state !== "firing") state.show("firing", alert.late ? "stopped" : "failing");
      else state.show(alert.state, stateName(alert.state));
      if (link.textContent !== visible(alert.name)) link.replaceChildren(name(alert.name));
      const several = alert.firing + alert.pending > 1 ? `${alert.firing} firing, ${alert.pending} pending` : "";
      text(more, [
        alert.severity, several,
        valueText(alert), alert.worst ? `${alert.worst.length > 60 ? `${alert.worst.slice(0, 30)}…${alert.worst.slice(-25)}` : alert.worst}${alert.keys > 1 ? ` and ${count(alert.keys - 1, "other")}` : ""}` : "",
        alert.since === null ? "" : `for ${lasted(alert, now)}`,
        alert.evaluated === null ? "never evaluated" : alert.late ? `evaluated ${span(now - alert.evaluated)} ago` : "",
        alert.failed ? count(alert.failed, "failed evaluation") : "",
        alert.silenced ? `${alert.silenced} silenced` : "",
      ].filter(Boolean).join(" · "));
    },
  };
}

function notifierItem() {
  const state = badge();
  const label = el("span", { class: "plain" });
  const more = el("span", { class: "more" });
  return {
    node: el("li", {}, state.node, el("span", { class: "what" }, label, more)),
    show(n, now) {
      if (label.textContent !== visible(n.name)) label.replaceChildren(name(n.name));
      const trouble = notifierTrouble(n, now);
      if (trouble) state.show("firing", trouble);
      else state.show(n.delivered ? "closed" : "inactive", n.delivered ? "delivers" : "unused");
      text(more, [
        `${figure(n.delivered)} delivered`, n.pending ? `${figure(n.pending)} pending` : "",
        n.failed ? count(n.failed, "failed attempt") : "", n.dropped ? `${figure(n.dropped)} dropped` : "",
        n.last === null ? "" : `last ${span(now - n.last)} ago`,
      ].filter(Boolean).join(" · "));
    },
  };
}

// changeItem shows a change of state: direct, through one other state, or with the list of the states
// in between, whose order is unknown.
export function changeItem(named = true) {
  const link = el("a");
  const when = el("time");
  const way = el("span", { class: "way" });
  const by = el("span", { class: "more" });
  const times = el("span", { class: "more" });
  const head = named ? [link, when] : [when];
  return {
    node: el("li", { class: "change" }, el("span", { class: "what" }, el("span", { class: "head" }, ...head), way, by, times)),
    show(change, now) {
      if (!way.firstChild) {
        const visits = change.by ?? [];
        const direct = visits.length === 1 && visits[0].times === 1;
        set(link, "href", `#${change.id}`);
        link.append(name(change.name));
        set(when, "datetime", new Date(change.at).toISOString());
        way.append(...stations(direct ? [change.from, visits[0].state, change.to] : [change.from, change.to]));
        if (visits.length && !direct) text(by, `through ${visits.map(visited).join(", ")}`);
      }
      text(times, change.changes > 2 ? `${change.changes} changes in ${span(change.at - change.oldest)}` : "");
      text(when, `${change.atMost ? "after " : ""}${clock(change.at, now)}`);
    },
  };
}

function stations(states) {
  return states.flatMap((state, i) => {
    const b = badge();
    b.show(state, stateName(state));
    return i ? [el("span", { class: "to" }, "→"), b.node] : [b.node];
  });
}

function visited({ state, times }) {
  return stateName(state) + (times > 1 ? ` ×${times}` : "");
}
