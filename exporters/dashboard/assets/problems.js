// The sources in trouble, each with the answers: since when, why, what happens next, and what is affected.

import { badge, cutName, el, keep, set, text } from "./dom.js";
import { answersOf, headline, inTrouble, severityOf } from "./answers.js";
import { count } from "./words.js";

const MOST = 8; // sources shown; the table has all

export class Problems {
  constructor(model) {
    this.model = model;
    this.items = new Map(); // by row ID
    this.title = el("h2", {}, "Needs attention");
    this.list = el("ul", { class: "problems" });
    this.more = el("p", { class: "empty" });
    this.firing = el("p", { class: "empty" });
    this.node = el("section", { class: "panel", "aria-label": "Needs attention" }, this.title, this.list, this.more, this.firing);
  }

  show() {
    const { rows, alerts, now } = this.model;
    const found = [...rows.values()].filter(inTrouble).sort((a, b) =>
      severityOf(a) - severityOf(b) || (a.down ?? a.troubleSince ?? 0) - (b.down ?? b.troubleSince ?? 0) || (a.name < b.name ? -1 : 1));
    const shown = found.slice(0, MOST);
    this.items = new Map(shown.map((r) => [r.id, this.items.get(r.id) ?? new Problem(r.id)]));
    for (const r of shown) this.items.get(r.id).show(r, now);
    keep(this.list, [...this.items.values()].map((item) => item.node));
    this.list.hidden = found.length === 0;
    text(this.title, found.length ? `Needs attention: ${count(found.length, "source")} of ${rows.size.toLocaleString("en")}` : "Nothing needs attention");
    this.more.hidden = found.length > 0 && found.length <= MOST;
    text(this.more, found.length ? `${count(Math.max(found.length - MOST, 0), "more source")}: choose a state or sort the table.` : "No breaker is open, and no limit refuses calls.");
    this.showFiring([...alerts.values()].filter((a) => a.state === "firing"));
  }

  showFiring(firing) {
    this.firing.hidden = firing.length === 0;
    const says = `${count(firing.length, "alert")} firing: ${firing.slice(0, 3).map((a) => a.name.slice(0, 60)).join(", ")}${firing.length > 3 ? ", …" : ""}`;
    text(this.firing, says);
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
    keep(this.node, answersOf(row, now).map(([label, says], i) => {
      const item = this.node.children[i] ?? el("div", {}, el("dt"), el("dd", {}, el("bdi")));
      text(item.firstChild, label);
      text(item.lastChild.firstChild, says);
      return item;
    }));
  }
}
