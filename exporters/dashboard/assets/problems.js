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
    this.needs = ""; // what needs attention, in words
    this.old = false; // the data is old
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
    const firing = [...alerts.values()].filter(fires).sort(oldest((a) => a.since ?? 0));
    const blind = [...alerts.values()].filter((a) => isBlind(a) && !fires(a)).sort(oldest((a) => a.failingSince ?? a.evaluated ?? 0));
    const failing = [...notifiers.values()].filter((n) => notifierTrouble(n, now)).sort(oldest((n) => n.failingSince ?? n.droppedAt));
    this.showUrgent([firing, blind, failing].flatMap((kind) => kind.slice(0, MOST)), now);
    const { panics, skipped, notices } = this.model.faults;
    this.noticed = panics || skipped || notices?.length; // the page says so above
    this.needs = [
      firing.length ? `${count(firing.length, "rule")} firing` : "", blind.length ? `${count(blind.length, "rule")} not evaluated` : "",
      failing.length ? `${count(failing.length, "notifier")} failing` : "",
      found.length ? `${count(found.length, "source")} of ${rows.size.toLocaleString("en")}` : "",
    ].filter(Boolean).join(", ");
    this.hidden = hidden;
    this.found = found.length;
    this.showTitle(this.old);
  }

  // showTitle says what needs attention. Of old data it says only what was known then.
  showTitle(old) {
    this.old = old;
    const none = this.noticed ? "No source" : "Nothing";
    const then = `No data since ${clock(this.model.at, Date.now())}`;
    const says = old ? (this.needs ? `${then}, when this needed attention: ${this.needs}` : `${then}, when ${none.toLowerCase()} needed attention`)
      : this.needs ? `Needs attention: ${this.needs}` : `${none} needs attention`;
    text(this.title, says);
    this.more.hidden = this.found > 0 && this.hidden === 0;
    const calm = old ? "No breaker was open then, and no limit refused calls." : "No breaker is open, and no limit refuses calls.";
    text(this.more, this.found ? `${count(this.hidden, "more source")}: choose a state or sort the table.` : calm);
  }

  showUrgent(rows, now) {
    this.urgentItems = new Map(rows.map((row) => [row.id, this.urgentItems.get(row.id) ?? new Urgent(row)]));
    for (const row of rows) this.urgentItems.get(row.id).show(row, now);
    keep(this.urgent, [...this.urgentItems.values()].map((item) => item.node));
    this.urgent.hidden = rows.length === 0;
  }
}

const fires = (a) => a.firing > (a.silenced ?? 0);

// isBlind reports whether a rule would not notice that its condition holds. No data is not trouble: the
// rule says what it means.
export function isBlind(a) {
  return Boolean(a.fault || a.late);
}

const RECENT = 15 * 60000; // ms for which a notification that was given up is trouble

// notifierTrouble returns a word for the trouble of a notifier, or "".
export function notifierTrouble(n, now) {
  if (n.failingSince) return "failing";
  return n.droppedAt && now - n.droppedAt < RECENT ? "gave up" : "";
}

const FAULTS = {
  panic: "its code panics", timeout: "its code does not answer in time", goexit: "its code ends its goroutine",
  not_finite: "its value is not finite", too_many_members: "it has too many members", same_key_text: "two members have the same key",
  too_many_absent: "more than 1,000 alerts are of absent members",
};

// blindText says why a rule is not evaluated.
function blindText(a) {
  if (a.late) return "the monitor does not run, or hangs";
  return a.fault ? `each evaluation fails: ${FAULTS[a.fault] ?? a.fault}` : "";
}

function alertAnswers(a, now) {
  if (!fires(a)) {
    const last = a.evaluated === null ? "it was never evaluated" : `last evaluated ${clock(a.evaluated, now)}, ${span(now - a.evaluated)} ago`;
    return [["Since", a.late ? last : sinceText(a.failingSince, false, now)], ["Why", blindText(a)],
      ["Affected", a.late ? "this rule cannot fire, or resolve" : a.noData ? `this rule: ${a.noData}` : "some of its members, or the texts of its alerts"], ["Next", a.late ? "" : "the next evaluation tries again"]];
  }
  const several = a.firing > 1 ? `${figure(a.firing)} alerts` : "";
  return [["Since", sinceText(a.since, a.atMost, now)], ["Why", [valueText(a), blindText(a)].filter(Boolean).join("; ")],
    ["Affected", [several, a.worst ? `worst ${a.worst}` : ""].filter(Boolean).join(", ")],
    ["Next", a.threshold === null ? "" : `resolves when the value is ${a.below ? "above" : "below"} ${valueOf(a.threshold, a.unit)}`]];
}

function notifierAnswers(n, now) {
  const last = n.last === null ? "nothing was ever delivered" : `last delivered ${span(now - n.last)} ago`;
  const since = n.failingSince ?? n.droppedAt;
  const lost = n.dropped ? `${count(n.dropped, "notification")} given up${n.droppedAt ? `, the last ${span(now - n.droppedAt)} ago` : ""}` : "";
  const next = [n.pending ? "it is tried again, and its alerts wait" : "none waits; the next change of an alert is sent", lost && "what was given up is not sent again"];
  return [["Since", sinceText(since, false, now)], ["Last error", n.lastError ?? ""], ["Next", next.filter(Boolean).join("; ")],
    ["Affected", [n.pending ? `${count(n.pending, "notification")} not delivered` : "", lost, last].filter(Boolean).join("; ")]];
}

function sinceText(since, atMost, now) {
  return since ? `${clock(since, now)}${atMost ? " or earlier" : ""}, for ${atMost ? "at least " : ""}${span(now - since)}` : "";
}

// Urgent is a rule that fires or is not evaluated, or a notifier that does not deliver.
class Urgent {
  constructor(row) {
    this.state = badge();
    this.says = el("span", { class: "says" });
    this.answers = new Answers();
    const of = row.severity === undefined ? el("b", {}, name(row.name)) : el("a", { href: `#${row.id}` }, name(row.name));
    this.node = el("li", { "data-state": "firing" }, el("p", { class: "bar" }, this.state.node, of, this.says), this.answers.node);
  }

  show(row, now) {
    const isRule = row.severity !== undefined;
    const word = isRule ? (fires(row) ? "firing" : "not evaluated") : row.failingSince ? "not delivering" : "gave up";
    this.state.show("firing", word);
    text(this.says, isRule ? row.severity && `severity ${row.severity}` : row.failingSince ? "Its alerts do not arrive." : "An alert did not arrive.");
    this.answers.showPairs(isRule ? alertAnswers(row, now) : notifierAnswers(row, now));
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
