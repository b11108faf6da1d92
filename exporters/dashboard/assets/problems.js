// What needs attention: firing alerts, notifiers that do not deliver, and sources in trouble. Each has
// answers: since when and why, and for sources what happens next and what is affected.

import { badge, cutName, el, keep, name, set, text } from "./dom.js";
import { answersOf, headline, inTrouble, severityOf, valueText } from "./answers.js";
import { clock, count, figure, span } from "./words.js";

const MOST = 8; // shown of each kind; the lists and the table have all

export class Problems {
  constructor(model) {
    this.model = model;
    this.items = new Map(); // by row ID
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
    const shown = found.slice(0, MOST);
    this.items = new Map(shown.map((r) => [r.id, this.items.get(r.id) ?? new Problem(r.id)]));
    for (const r of shown) this.items.get(r.id).show(r, now);
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
    this.more.hidden = found.length > 0 && found.length <= MOST;
    text(this.more, found.length ? `${count(Math.max(found.length - MOST, 0), "more source")}: choose a state or sort the table.` : "No breaker is open, and no limit refuses calls.");
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
  return [["Since", sinceText(a.since, a.atMost, now)], ["Why", valueText(a)], ["Affected", [several, a.worst ? `worst ${a.worst}` : ""].filter(Boolean).join(", ")]];
}

function notifierAnswers(n, now) {
  const last = n.last === null ? "nothing was ever delivered" : `last delivered ${span(now - n.last)} ago`;
  return [["Since", sinceText(n.failingSince, false, now)], ["Last error", n.lastError ?? ""], ["Affected", `${count(n.pending, "notification")} not delivered; ${last}`]];
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
    text(this.says, row.severity ?? "Nobody is told of the alerts.");
    this.answers.showPairs(answers);
  }
}

class Problem {
  constructor(id) {
    this.link = el("a", { href: `#${id}` });
    this.state = badge();
    this.says = el("span", { class: "says" });
    this.answers = new Answers();
    this.node = el("li", {}, el("p", { class: "bar" }, this.state.node, this.link, this.says), this.answers.node);
  }

  show(row, now) {
    if (this.name !== row.name) {
      this.name = row.name;
      this.link.replaceChildren(cutName(row.name));
    }
    const { state, word, says } = headline(row);
    this.state.show(state, word);
    set(this.node, "data-state", state);
    text(this.says, says);
    this.answers.show(row, now);
  }
}

// Answers lists the answers about one source.
export class Answers {
  constructor() {
    this.node = el("dl", { class: "answers" });
  }

  show(row, now) {
    this.showPairs(answersOf(row, now));
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
