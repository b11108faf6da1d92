// The memory of a source: its incidents, also those before the page was opened, and its configuration.

import { el, keep, text } from "./dom.js";
import { clock, span } from "./words.js";

// Incidents lists the last times that a breaker was not closed, the newest first.
export class Incidents {
  constructor() {
    this.list = el("ul", { class: "list", tabindex: "0", "aria-label": "Incidents" });
    this.node = el("section", { class: "panel", hidden: "" }, el("h2", {}, "Incidents"), this.list);
  }

  show(rows = [], now) {
    this.node.hidden = rows.length === 0;
    keep(this.list, rows.slice().reverse().map((r, i) => {
      const node = this.list.children[i] ?? el("li", {}, el("span", { class: "what" }, el("span", { class: "plain" }), el("span", { class: "more" }, el("bdi"))));
      const [when, more] = node.firstChild.children;
      text(when, `${clock(r.began, now)} ${r.ended === null ? "until now" : `to ${clock(r.ended, now)}`}, ${span((r.ended ?? now) - r.began)}`);
      text(more.firstChild, [r.openings > 1 ? `opened ${r.openings} times` : "", r.cause].filter(Boolean).join("; "));
      return node;
    }));
  }
}

// Settings shows the configuration in effect.
export class Settings {
  constructor() {
    this.list = el("dl", { class: "settings" });
    this.node = el("details", { class: "panel", hidden: "" }, el("summary", {}, "Configuration in effect"), this.list);
  }

  show(settings = []) {
    this.node.hidden = settings.length === 0;
    keep(this.list, settings.map(({ name, value }, i) => {
      const node = this.list.children[i] ?? el("div", {}, el("dt"), el("dd"));
      text(node.firstChild, name);
      text(node.lastChild, value);
      return node;
    }));
  }
}
