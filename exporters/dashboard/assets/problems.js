// What needs attention: firing alerts, notifiers that do not deliver, and sources in trouble. Each has
// answers: since when and why, and for sources what happens next and what is affected.

import { badge, cutName, el, keep, name, set, text } from "./dom.js";
import { answersOf, causeOf, headline, inTrouble, severityOf, valueText } from "./answers.js";
import { clock, count, figure, span, valueOf } from "./words.js";

const MOST = 8; // shown of each kind; the lists and the table have all

export class Problems {
  constructor(model) {
    this.model = model;
    this.items = new Map(); // by row ID, or by the cause of several
    this.title = el("h2", {}, "Needs attention");
    this.urgent = el("ul", { class: "problems" }); // alerts and notifiers
    this.urgentItems = new Map(); // by ID
    this.list = el("ul", { class: "problems" });
    this.more = el("p", { class: "empty" });
    this.node = el("section", { class: "panel", "aria-label": "Needs attention" }, this.title, this.urgent, this.list, this.more);
  }

  show() {
    const { rows, alerts, notifiers, now } = this.model;
    const found = [...rows.values()].filter(inTrouble).sort((a, b) =>
      severityOf(a) - severityOf(b) || (a.down ?? a.troubleSince ?? 0) - (b.down ?? b.troubleSince ?? 0) || (a.name < b.name ? -1 : 1));
    const shown = [...Map.groupBy(found, causeOf).entries()].slice(0, MOST).map(([cause, list]) => [list.length > 1 ? cause : list[0].id, list]);
    this.items = new Map(shown.map(([id]) => [id, this.items.get(id) ?? new Problem()]));
    for (const [id, list] of shown) this.items.get(id).show(list, now);
    const hidden = found.length - shown.reduce((n, [, list]) => n + list.length, 0);
    keep(this.list, [...this.items.values()].map((item) => item.node));
    this.list.hidden = found.length === 0;
    const oldest = (since) => (a, b) => since(a) - since(b) || (a.name < b.name ? -1 : 1);
    const firing = [...alerts.values()].filter((a) => a.firing > a.silenced || (a.firing && !a.silenced)).sort(oldest((a) => a.since ?? 0));
    const failing = [...notifiers.values()].filter((n) => n.failingSince && n.pending).sort(oldest((n) => n.failingSince));
    this.showUrgent(firing, failing, now);
    const needs = [
      firing.length ? `${count(firing.length, "rule")} firing` : "", failing.length ? `${count(failing.length, "notifier")} failing` : "",
      found.length ? `${count(found.length, "source")} of ${rows.size.toLocaleString("en")}` : "",
    ].filter(Boolean);
    const { panics, skipped, notices } = this.model.faults;
    const noticed = panics || skipped || notices?.length; // the page says so above
    text(this.title, needs.length ? `Needs attention: ${needs.join(", ")}` : noticed ? "No source needs attention" : "Nothing needs attention");
    this.more.hidden = found.length > 0 && hidden === 0;
    text(this.more, found.length ? `${count(hidden, "more source")}: choose a state or sort the table.` : "No breaker is open, and no limit refuses calls.");
  }

  showUrgent(firing, failing, now) {
    const entries = [...firing.slice(0, MOST).map((a) => [a, alertAnswers(a, now)]), ...failing.slice(0, MOST).map((n) => [n, notifierAnswers(n, now)])];
    this.urgentItems = new Map(entries.map(([row]) => [row.id, this.urgentItems.get(row.id) ?? new Urgent(row)]));
    for (const [row, answers] of entries) this.urgentItems.get(row.id).show(row, answers);
    keep(this.urgent, [...this.urgentItems.values()].map((item) => item.node));
    this.urgent.hidden = entries.length === 0;
  }
}

function alertAnswers(a, now) {
  const several = a.firing > 1 ? `${figure(a.firing)} alerts` : "";
  return [["Since", sinceText(a.since, a.atMost, now)], ["Why", valueText(a)], ["Affected", [several, a.worst ? `worst ${a.worst}` : ""].filter(Boolean).join(", ")],
    ["Next", a.threshold === null ? "" : `resolves when the value is ${a.below ? "above" : "below"} ${valueOf(a.threshold, a.unit)}`]];
}

function notifierAnswers(n, now) {
  const last = n.last === null ? "nothing was ever delivered" : `last delivered ${span(now - n.last)} ago`;
  return [["Since", sinceText(n.failingSince, false, now)], ["Last error", n.lastError ?? ""], ["Next", "it is tried again until it succeeds, and its alerts wait"],
    ["Affected", `${count(n.pending, "notification")} not delivered; ${last}`]];
}

function sinceText(since, atMost, now) {
  return since ? `${clock(since, now)}${atMost ? " or earlier" : ""}, for ${atMost ? "at least " : ""}${span(now - since)}` : "";
}

// Urgent is a firing alert, or a notifier that does not deliver.
class Urgent {
  constructor(row) {
    this.state = badge();
    this.says = el("span", { class: "says" });
    this.answers = new Answers();
    const of = row.severity === undefined ? el("b", {}, name(row.name)) : el("a", { href: `#${row.id}` }, name(row.name));
    this.node = el("li", { "data-state": "firing" }, el("p", { class: "bar" }, this.state.node, of, this.says), this.answers.node);
  }

  show(row, answers) {
    this.state.show("firing", row.severity === undefined ? "not delivering" : "firing");
    text(this.says, row.severity === undefined ? "Its alerts do not arrive." : row.severity && `severity ${row.severity}`);
    this.answers.showPairs(answers);
  }
}

// Problem is a source in trouble, or several with one cause.
class Problem {
  constructor() {
    this.title = el("b");
    this.links = new Map(); // by row ID
    this.names = el("span", { class: "names" });
    this.others = el("span", { class: "more" });
    this.state = badge();
    this.says = el("span", { class: "says" });
    this.answers = new Answers();
    this.head = el("p", { class: "bar" });
    this.node = el("li", {}, this.head, this.answers.node);
  }

  show(rows, now) {
    const { state, word, says } = headline(rows[0]);
    const alike = rows.filter((r) => headline(r).word === word).length;
    this.links = new Map(rows.slice(0, MOST).map((r) => [r.id, this.links.get(r.id) ?? el("a", { href: `#${r.id}` }, cutName(r.name))]));
    keep(this.names, [...this.links.values()]);
    keep(this.head, rows.length === 1 ? [this.state.node, this.names, this.says] : [this.state.node, this.title, this.says, this.names, this.others]);
    text(this.title, `${count(rows.length, "source")} with one cause`);
    this.others.hidden = rows.length <= MOST;
    text(this.others, `and ${rows.length - MOST} more`);
    this.state.show(state, alike < rows.length ? `${alike} ${word}` : word);
    set(this.node, "data-state", state);
    text(this.says, says);
    this.answers.showPairs(answersOf(rows, now));
  }
}

// Answers lists the answers about one source.
export class Answers {
  constructor() {
    this.node = el("dl", { class: "answers" });
  }

  show(row, now) {
    this.showPairs(answersOf([row], now));
  }

  showPairs(pairs) {
    keep(this.node, pairs.filter(([, says]) => says).map(([label, says], i) => {
      const item = this.node.children[i] ?? el("div", {}, el("dt"), el("dd", {}, el("bdi")));
      text(item.firstChild, label);
      text(item.lastChild.firstChild, says);
      return item;
    }));
  }
}
