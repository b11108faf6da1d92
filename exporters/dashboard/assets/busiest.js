// The keys that a limiter refused most often in the last minutes.

import { el, keep, name, text } from "./dom.js";
import { figure } from "./words.js";

export class Busiest {
  constructor() {
    this.list = el("ul", { class: "list", tabindex: "0", "aria-label": "Busiest refused keys" });
    this.node = el("section", { class: "panel", hidden: "" }, el("h2", {}, "Busiest refused keys, last 5 to 10 minutes"), this.list);
  }

  show(rows = []) {
    this.node.hidden = rows.length === 0;
    keep(this.list, rows.map(({ key, atLeast, atMost }, i) => {
      const node = this.list.children[i] ?? el("li", {}, el("b"), name(" "));
      text(node.firstChild, atLeast === atMost ? figure(atLeast) : `${figure(atLeast)} to ${figure(atMost)}`);
      text(node.lastChild, key);
      return node;
    }));
  }
}
