// The buttons of a source, where a handler of package admin is mounted. Without one the page is read-only.

import { el, text } from "./dom.js";

const base = document.getElementById("content").dataset.admin;

const BUTTONS = {
  force: [["Force open", { state: "open" }], ["Force closed", { state: "closed" }], ["Shadow", { state: "shadow" }]],
  release: [["Release", {}]],
  reset: [["Reset", {}]],
  hold: [["Hold", {}]],
};
const REFUSES = ["Force open", "Hold"]; // these are confirmed
const LASTING = ["force", "hold", "limits", "silence"]; // these get the duration
const DURATIONS = [["10m", "for 10 minutes"], ["1m", "for 1 minute"], ["1h", "for 1 hour"], ["24h", "for 1 day"], ["", "until changed"]];

export class Actions {
  // of returns the actions of a SourceView, or null on a page that is read-only.
  static of(view) {
    return base && view ? new Actions(view) : null;
  }

  constructor(view) {
    this.view = view;
    this.duration = el("select", { "aria-label": "Duration" }, ...DURATIONS.map(([value, says]) => el("option", { value }, says)));
    this.reason = el("input", { "aria-label": "Reason", placeholder: "Reason, for the log", maxlength: "200" });
    this.rows = el("div");
    this.message = el("p", { class: "bar", role: "status", hidden: "" });
    this.node = el("section", { class: "panel actions", hidden: "" },
      el("h2", {}, "Actions"), el("div", { class: "bar" }, this.duration, this.reason), this.rows, this.message);
    view.node.querySelector(".headline").after(this.node);
  }

  // show finds the objects of the source once its name is known.
  show() {
    if (this.found || !["calls", "alert", "notifier"].includes(this.view.data?.class)) return;
    this.found = true;
    this.refresh();
  }

  async refresh() {
    const { objects = [] } = await this.ask("objects");
    const rows = this.view.data.class === "calls" ? await this.objectRows(objects) : await this.monitorRows(objects);
    this.rows.replaceChildren(...rows);
    this.node.hidden = !rows.length && this.message.hidden;
  }

  // objectRows returns a row for each object of the source. The member of a group is followed by the group.
  async objectRows(objects) {
    const { name, key = "" } = this.view.data;
    const group = key && name.endsWith(` / ${key}`) ? name.slice(0, -key.length - 3) : "";
    let list = objects.filter((o) => o.name === (group || name) && (!group || o.group));
    if (group && key !== "_other") { // which are many members
      const members = await Promise.all(list.map((o) => this.ask("object", { kind: o.kind, name: o.name, key })));
      list = [...members, ...list];
    }
    return list.filter((o) => o.actions?.length).map((o) => this.row(o));
  }

  // monitorRows returns a row for each monitor that has the rule or the notifier.
  async monitorRows(objects) {
    const { name, class: kind } = this.view.data;
    const all = objects.filter((o) => o.kind === "monitor").map((o) => this.ask("object", { kind: o.kind, name: o.name }));
    const list = (await Promise.all(all)).filter((o) => (kind === "alert" ? o.rules : o.notifiers)?.includes(name));
    return list.map((o) => (kind === "alert" ? this.alertRow(o) : this.notifierRow(o)));
  }

  alertRow(o) {
    const { name, severity } = this.view.data;
    const match = [`alertname=${JSON.stringify(name)}`, ...(severity ? [`severity=${JSON.stringify(severity)}`] : [])];
    const ends = (o.silences ?? []).map((s) => this.button(`End the silence ${s.silence}`, o, "unsilence", () => ({ silence: s.silence })));
    return el("div", { class: "bar", role: "group", "aria-label": "silences" }, this.button("Silence", o, "silence", () => ({ match })), ...ends);
  }

  notifierRow(o) {
    return el("div", { class: "bar" }, this.button("Send a test message", o, "test", () => ({ notifier: this.view.data.name })));
  }

  row(o) {
    const all = o.keys && !o.key ? " all" : "";
    const buttons = o.actions.flatMap((verb) => (BUTTONS[verb] ?? []).map(([says, body]) => this.button(says + all, o, verb, () => body)));
    if (o.actions.includes("limits")) {
      const fields = [["rate", "Rate"], ["max_concurrent", "Calls in flight"], ["limit", "Requests per window"], ["k", "K"], ["max_refusal", "Highest refusal rate"]].filter(([field]) => o[field]);
      const inputs = fields.map(([field, says]) => el("input", { "aria-label": says, title: says, value: o[field], "data-field": field }));
      buttons.push(...inputs, this.button("Change limits", o, "limits", () => limitsOf(inputs)));
    }
    const ends = (o.timed ?? []).map((t) => `End of the ${t.what}: ${new Date(t.until).toLocaleTimeString()}`).join(" ");
    return el("div", { class: "bar", role: "group", "aria-label": o.kind + all }, el("span", { class: "kind" }, o.kind.replace("_", " ")), ...buttons,
      el("span", { class: "more" }, ends));
  }

  button(says, o, verb, body) {
    const node = el("button", { type: "button" }, says);
    node.addEventListener("click", async () => {
      const whose = o.keys && !o.key ? `all keys of ${o.name}` : o.name;
      if (REFUSES.includes(says.replace(/ all$/, "")) && !confirm(`${says}: calls of ${whose} will be refused. Continue?`)) return;
      const all = { ...body() };
      if (LASTING.includes(verb) && this.duration.value) all.for = this.duration.value;
      if (this.reason.value) all.reason = this.reason.value;
      node.disabled = true;
      const which = o.key ? { key: o.key } : o.keys ? { all: "true" } : {};
      const done = await this.ask(verb, { kind: o.kind, name: o.name, ...which }, all);
      node.disabled = false;
      if (!done.actions) return;
      await this.refresh();
      this.say(`${says}: done.`);
    });
    return node;
  }

  // ask sends a request, and returns the answer, or an empty object after it has shown the error.
  async ask(path, query = {}, body = null) {
    try {
      const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
      const answer = await fetch(`${base}${path}?${new URLSearchParams(query)}`, { cache: "no-store", ...options });
      const content = await answer.json();
      if (answer.ok) return content;
      this.say(content.error ?? `The admin handler answers ${answer.status}.`);
    } catch {
      this.say("The admin handler does not answer.");
    }
    return {};
  }

  say(what) {
    this.node.hidden = this.message.hidden = false;
    text(this.message, what);
  }
}

// limitsOf returns the values that were changed.
function limitsOf(inputs) {
  const changed = inputs.filter((i) => i.value !== i.defaultValue);
  return Object.fromEntries(changed.map((i) => [i.dataset.field, i.dataset.field === "rate" ? i.value : Number(i.value)]));
}
