// The table of sources, with sorting, search and pages, so that a thousand sources cost no more than
// fifty.

import { Spark } from "./chart.js";
import { badge, cutName, el, keep, set, text } from "./dom.js";
import { count, lasted, latency, percent, rank, rate, stateName } from "./words.js";

const PAGE = 50;

// The columns: by returns the sort key of a row, and says its text, if the cell is only text.
const COLUMNS = [
  { key: "name", title: "Name", by: (r) => r.name.toLowerCase() },
  { key: "kind", title: "Kind", by: (r) => r.kind, says: (r) => r.kind },
  { key: "state", title: "State", by: (r) => rank(r.state) },
  { key: "since", title: "For", help: "time in this state, or since the breaker was last closed", by: (r) => -(r.down ?? r.since ?? Infinity), says: lasted, number: true },
  { key: "rate", title: "Rate", help: "allowed calls per second over the last 10 s", by: (r) => r.rate, says: (r) => rate(r.rate), number: true, down: true },
  { key: "failureRate", title: "Failing", help: "failure rate in the breaker's window", by: (r) => r.failureRate, says: (r) => percent(r.failureRate), number: true, down: true },
  { key: "p50", title: "p50", help: "median latency", by: (r) => r.p50, says: (r) => latency(r.p50), number: true, down: true },
  { key: "p99", title: "p99", help: "latency that 99 % of the calls did not exceed", by: (r) => r.p99, says: (r) => latency(r.p99), number: true, down: true },
  { key: "refused", title: "Refused", help: "refused calls per second over the last 10 s", by: (r) => r.refused, says: (r) => rate(r.refused), number: true, down: true },
  { key: "trail", title: "Last minute", help: "blue: successful calls, red: failed or refused calls" },
];

export class Table {
  constructor(model) {
    this.model = model;
    this.rows = new Map(); // by row ID, the rows shown
    this.order = []; // IDs of all matching rows in the order shown
    this.page = 0;
    this.sort = { column: COLUMNS[2], down: false };
    this.filter = { text: "", state: "" };
    this.build();
  }

  build() {
    this.body = el("tbody", { role: "rowgroup" });
    this.heads = new Map();
    const heads = COLUMNS.map((column) => {
      const head = el("th", { scope: "col", role: "columnheader", class: `c-${column.key}${column.number ? " number" : ""}` });
      if (column.by) {
        const button = el("button", { type: "button", title: column.help }, column.title);
        button.addEventListener("click", () => this.sortBy(column));
        head.append(button);
      } else {
        head.append(column.title);
        set(head, "title", column.help);
      }
      this.heads.set(column, head);
      return head;
    });
    this.grid = el("table", { class: "sources", role: "table" }, el("caption", { class: "unseen" }, "Sources"),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)), this.body);
    this.empty = el("p", { class: "empty" });
    this.said = el("span", { role: "status" });
    this.back = el("button", { type: "button" }, "Previous");
    this.forth = el("button", { type: "button" }, "Next");
    this.back.addEventListener("click", () => this.turn(-1));
    this.forth.addEventListener("click", () => this.turn(1));
    this.pager = el("nav", { class: "pager", "aria-label": "Pages of the table" }, this.back, this.said, this.forth);
    this.node = el("div", {}, this.grid, this.empty, this.pager);
  }

  sortBy(column) {
    const again = this.sort.column === column;
    this.sort = { column, down: again ? !this.sort.down : Boolean(column.down) };
    this.page = 0;
    this.show(true);
  }

  turn(by) {
    this.page += by;
    this.show(true);
    this.grid.scrollIntoView({ block: "nearest" });
  }

  search(filter) {
    Object.assign(this.filter, filter);
    this.page = 0;
    this.show(true);
  }

  // show draws the current rows. While the pointer or the focus is in the table, rows keep their places
  // unless reorder is set.
  show(reorder = false) {
    const held = this.body.matches(":hover") || this.body.contains(document.activeElement);
    if (reorder || !held) this.order = this.sorted();
    else this.order = this.order.filter((id) => this.model.rows.has(id));

    const pages = Math.max(1, Math.ceil(this.order.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const shown = this.order.slice(this.page * PAGE, (this.page + 1) * PAGE);
    const rows = new Map(shown.map((id) => [id, this.rows.get(id) ?? new Row(id)]));
    this.rows = rows;
    for (const [id, row] of rows) row.show(this.model.rows.get(id), this.model);
    keep(this.body, [...rows.values()].map((row) => row.node));

    for (const [column, head] of this.heads) {
      set(head, "aria-sort", column === this.sort.column ? (this.sort.down ? "descending" : "ascending") : null);
    }
    this.tell(pages);
  }

  tell(pages) {
    const all = this.model.rows.size;
    const found = this.order.length;
    this.empty.hidden = found > 0;
    this.grid.hidden = found === 0;
    text(this.empty, all ? "No sources match." : "There are no sources yet.");
    this.pager.hidden = pages === 1;
    this.back.disabled = this.page === 0;
    this.forth.disabled = this.page === pages - 1;
    const first = this.page * PAGE;
    text(this.said, `${first + 1}–${Math.min(first + PAGE, found)} of ${count(found, "source")}`);
  }

  sorted() {
    const { column, down } = this.sort;
    const asked = this.filter.text.trim().toLowerCase();
    const rows = [...this.model.rows.values()].filter((r) =>
      (!this.filter.state || r.state === this.filter.state) &&
      (!asked || `${r.name} ${r.kind} ${stateName(r.state)}`.toLowerCase().includes(asked)));
    rows.sort((a, b) => compare(column.by(a), column.by(b), down) || compare(a.name, b.name, false));
    return rows.map((r) => r.id);
  }
}

// compare sorts unknown values last in both directions.
function compare(a, b, down) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return (a < b) === down ? 1 : -1;
}

// Row is a row of the table.
class Row {
  constructor(id) {
    this.link = el("a", { href: `#${id}` });
    this.state = badge();
    this.spark = new Spark();
    this.cells = COLUMNS.map((column) =>
      el("td", { role: "cell", class: `c-${column.key}${column.number ? " number" : ""}`, "data-label": column.title }));
    this.node = el("tr", { role: "row" }, ...this.cells);
    this.cell("name").append(this.link);
    this.cell("state").append(this.state.node);
    this.cell("trail").append(this.spark.node);
  }

  cell(key) {
    return this.cells[COLUMNS.findIndex((c) => c.key === key)];
  }

  show(row, model) {
    if (this.row?.name !== row.name) {
      this.link.replaceChildren(cutName(row.name));
      set(this.link, "title", row.name.length > 24 ? row.name : null);
    }
    if (this.row !== row) {
      this.state.show(row.state || "other", stateName(row.state));
      set(this.node, "data-state", row.state);
      set(this.cell("failureRate"), "data-bad", failing(row));
      set(this.cell("refused"), "data-bad", row.refused > 0);
    }
    COLUMNS.forEach((column, i) => {
      if (column.says) text(this.cells[i], column.says(row, model.now));
    });
    this.spark.show(model.trails.get(row.id), model.length);
    this.row = row;
  }
}

// failing reports whether the failure rate is at least half of that at which the breaker opens.
function failing(row) {
  return row.failureRate !== null && row.threshold !== null && row.failureRate >= row.threshold / 2;
}
