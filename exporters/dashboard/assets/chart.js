// Charts in SVG: a small one per row of the table, and those of a single source.

import { el, set, svg, text } from "./dom.js";
import { clock, span, stateName } from "./words.js";

const SPARK = { width: 120, height: 22 };

// Spark shows calls per second over the last minute: successful calls below, failed and refused ones on
// top.
export class Spark {
  constructor() {
    this.bad = svg("path", { class: "bad" });
    this.good = svg("path", { class: "good" });
    this.node = svg("svg", {
      class: "spark", viewBox: `0 0 ${SPARK.width} ${SPARK.height}`, preserveAspectRatio: "none", "aria-hidden": "true",
    }, this.bad, this.good);
  }

  show(trail = [], length) {
    const sums = trail.map(([good, bad]) => (good ?? 0) + (bad ?? 0));
    const top = Math.max(...sums, 0);
    const step = SPARK.width / length;
    const left = SPARK.width - trail.length * step;
    const outline = (values) => (top > 0 ? steps(values.map((v) => SPARK.height * (1 - v / top)), left, step) : "");
    set(this.bad, "d", outline(sums));
    set(this.good, "d", outline(trail.map(([good]) => good ?? 0)));
  }
}

// steps returns the outline of adjacent bars.
function steps(tops, left, step) {
  let path = `M${round(left)} ${SPARK.height}`;
  tops.forEach((y, i) => { path += `V${round(y)}H${round(left + (i + 1) * step)}`; });
  return `${path}V${SPARK.height}Z`;
}

const MARGIN = { left: 52, right: 10, top: 8, bottom: 20 };

// Chart shows lines over time. The pointer or the arrow keys move a cursor. The legend shows the values
// at the cursor, or the latest.
export class Chart {
  // Each line is {key, name, look}, where look is the end of a CSS class. format returns the text of a
  // value. The axis ends between least and most. move is called with the time of the cursor, or null.
  constructor({ title, height = 150, lines, format, least = 0, most = Infinity, move }) {
    Object.assign(this, { title, height, lines, format, least, most, move });
    this.width = 640;
    this.paper = svg("svg", { "aria-hidden": "true", height });
    this.plot = el("div", {
      class: "plot", tabindex: 0, role: "slider", "aria-label": title, "aria-orientation": "horizontal", "aria-valuemin": 0,
    }, this.paper);
    this.values = lines.map(() => el("b"));
    this.when = el("span", { class: "when" });
    const legend = lines.map((line, i) =>
      el("li", { class: `line-${line.look}` }, swatch(line.look), `${line.name} `, this.values[i]));
    this.node = el("figure", { class: "chart" },
      el("figcaption", {}, el("h3", {}, title), this.when, el("ul", { class: "legend" }, ...legend)), this.plot);
    this.listen();
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width > 0 && width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(this.plot);
  }

  listen() {
    this.plot.addEventListener("pointermove", (e) => this.move(this.timeAt(e.offsetX)));
    this.plot.addEventListener("pointerleave", () => this.move(null));
    this.plot.addEventListener("blur", () => this.move(null));
    this.plot.addEventListener("keydown", (e) => {
      const at = this.data?.at ?? [];
      const now = this.index();
      const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now + 10, PageDown: now - 10, Home: 0, End: at.length - 1 }[e.key];
      if (to === undefined || !at.length) return;
      e.preventDefault();
      this.move(at[Math.min(Math.max(to, 0), at.length - 1)]);
    });
  }

  // show takes the columns of a source's history, its length and interval, and the time of the cursor.
  show(data, { length, interval }, cursor, limit = null) {
    Object.assign(this, { data, length, interval, cursor, limit });
    this.draw();
  }

  draw() {
    if (!this.data?.at.length) return;
    const { at } = this.data;
    this.to = at[at.length - 1];
    const highest = Math.max(this.least, (this.limit ?? 0) * 1.2, ...this.lines.flatMap((line) => this.data[line.key].map((v) => v ?? 0)));
    const top = Math.min(nice(highest), this.most);
    const y = (v) => MARGIN.top + (this.height - MARGIN.top - MARGIN.bottom) * (1 - v / top);
    const parts = [this.grid(top, y)];
    if (this.limit !== null) parts.push(across(this.width, y(this.limit), "limit"));
    for (const line of this.lines) {
      parts.push(svg("path", { class: `curve line-${line.look}`, d: curve(at.map((t) => this.x(t)), this.data[line.key], y, (i) => paused(at, i, this.interval)) }));
    }
    const i = this.index();
    if (this.cursor !== null) parts.push(this.mark(i, y));
    set(this.paper, "viewBox", `0 0 ${this.width} ${this.height}`);
    set(this.paper, "width", this.width);
    this.paper.replaceChildren(...parts);
    this.tell(i);
  }

  x(time) {
    return MARGIN.left + (this.width - MARGIN.left - MARGIN.right) * (1 - (this.to - time) / this.length);
  }

  timeAt(x) {
    return this.to - this.length * (1 - (x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right));
  }

  // index returns the index of the sample nearest to the cursor, or of the last one without a cursor.
  index() {
    const at = this.data?.at ?? [];
    if (this.cursor === null) return at.length - 1;
    return at.reduce((best, t, i) => (Math.abs(t - this.cursor) < Math.abs(at[best] - this.cursor) ? i : best), 0);
  }

  grid(top, y) {
    const group = svg("g", { class: "grid" });
    for (const v of [0, top / 2, top]) {
      group.append(across(this.width, y(v), ""), svg("text", { x: MARGIN.left - 6, y: y(v) + 4, "text-anchor": "end" }, this.format(v)));
    }
    const every = this.length / (this.width < 500 ? 2 : 5);
    for (let back = 0; back <= this.length; back += every) {
      const x = this.x(this.to - back);
      const anchor = back === 0 ? "end" : back >= this.length ? "start" : "middle";
      group.append(svg("text", { x, y: this.height - 4, "text-anchor": anchor }, back ? `−${span(back)}` : "now"));
    }
    return group;
  }

  mark(i, y) {
    const x = round(this.x(this.data.at[i]));
    const group = svg("g", { class: "cursor" }, svg("path", { d: `M${x} ${MARGIN.top}V${this.height - MARGIN.bottom}` }));
    for (const line of this.lines) {
      const v = this.data[line.key][i];
      if (v !== null) group.append(svg("circle", { class: `line-${line.look}`, cx: x, cy: round(y(v)), r: 3.5 }));
    }
    return group;
  }

  tell(i) {
    const formatted = this.lines.map((line) => this.format(this.data[line.key][i]));
    formatted.forEach((value, n) => text(this.values[n], value));
    const at = clock(this.data.at[i], this.to);
    text(this.when, this.cursor === null ? "" : at);
    set(this.plot, "aria-valuemax", this.data.at.length - 1);
    set(this.plot, "aria-valuenow", i);
    set(this.plot, "aria-valuetext", `${at}: ${this.lines.map((line, n) => `${line.name} ${formatted[n]}`).join(", ")}`);
  }
}

// Strip shows the states of a source over the time span of the charts.
export class Strip {
  constructor() {
    this.width = 640;
    this.paper = svg("svg", { class: "strip", height: 26, role: "img" });
    this.node = el("div", { class: "plot" }, this.paper);
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width > 0 && width !== this.width) {
        this.width = width;
        if (this.data) this.show(this.data, this);
      }
    }).observe(this.node);
  }

  show(data, { length, interval }) {
    Object.assign(this, { data, length, interval });
    const to = data.at[data.at.length - 1];
    const room = this.width - MARGIN.left - MARGIN.right;
    const x = (t) => MARGIN.left + room * (1 - (to - t) / length);
    const stays = runs(data, interval);
    const bars = stays.map((stay) => {
      const from = x(stay.from);
      const width = Math.max(x(stay.to) - from, 2);
      const name = stateName(stay.state);
      const bar = svg("g", { "data-state": stay.state }, svg("rect", { x: round(from), y: 3, width: round(width), height: 20 }),
        svg("title", {}, `${name} for ${span(stay.to - stay.from)}`));
      if (width > 8 * name.length + 12) bar.append(svg("text", { x: round(from + 6), y: 17 }, name));
      return bar;
    });
    set(this.paper, "viewBox", `0 0 ${this.width} 26`);
    set(this.paper, "width", this.width);
    set(this.paper, "aria-label", `States: ${stays.map((s) => `${stateName(s.state)} for ${span(s.to - s.from)}`).join(", ")}`);
    this.paper.replaceChildren(...bars);
  }
}

// runs joins consecutive samples of the same state. A pause in the sampling ends a run.
function runs({ at, state }, interval) {
  const list = [];
  at.forEach((t, i) => {
    const last = list[list.length - 1];
    const follows = last && !paused(at, i, interval);
    if (follows) last.to = t;
    if (!follows || last.state !== state[i]) list.push({ state: state[i], from: t, to: t });
  });
  return list;
}

// paused reports whether there was a pause in the sampling before sample i.
function paused(at, i, interval) {
  return i > 0 && at[i] - at[i - 1] >= 3 * interval;
}

// curve returns the path of a line, which is interrupted at missing values and pauses in the sampling.
function curve(xs, values, y, pausedBefore) {
  let path = "";
  let pen = false;
  values.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    const draw = pen && !pausedBefore(i);
    path += `${draw ? "L" : "M"}${round(xs[i])} ${round(y(v))}${draw ? "" : "h.01"}`;
    pen = true;
  });
  return path;
}

function across(width, y, look) {
  return svg("path", { class: look, d: `M${MARGIN.left} ${round(y)}H${width - MARGIN.right}` });
}

function swatch(look) {
  return svg("svg", { class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("path", { class: `curve line-${look}`, d: "M1 4H21" }));
}

// nice rounds up to 1, 2, 2.5 or 5 times a power of ten, for the end of an axis.
function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].find((m) => m * power >= value * 0.9999) * power;
}

function round(v) {
  return Math.round(v * 10) / 10;
}
