// The page: it selects the view and applies the data of the feed.

import { Actions } from "./admin.js";
import { set, text } from "./dom.js";
import { Feed } from "./feed.js";
import { Model } from "./model.js";
import { Overview } from "./overview.js";
import { SourceView } from "./source.js";
import { clock, count, span, stateName, visible } from "./words.js";

const main = document.getElementById("content");
const status = document.getElementById("status");
const notices = document.getElementById("notices");
const faults = document.getElementById("faults");
const spoken = document.getElementById("spoken");
const title = document.title;

const model = new Model();
const overview = new Overview(model);
let view = null; // a SourceView, or null for the overview
let actions = null; // of the view, or null if the page is read-only

function route() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (id === "content") return; // the skip link
  if (id === (view?.id ?? "") && main.firstChild) return;
  const before = view;
  view = id ? new SourceView(id) : null;
  actions = Actions.of(view);
  main.replaceChildren(view ? view.node : overview.node);
  document.title = title;
  show();
  scrollTo(0, 0);
  // Move the focus to the new view, for keyboards and screen readers.
  if (view) view.title.focus();
  else if (before) (document.querySelector(`a[href="#${CSS.escape(before.id)}"]`) ?? main).focus();
}

function show() {
  if (!model.seq) return;
  if (view) view.refresh(model).then(() => actions?.show());
  else overview.show();
  const { panics, skipped, notices: texts = [] } = model.faults;
  notices.hidden = !texts.length;
  text(notices, texts.join("\n\n"));
  faults.hidden = !panics && !skipped;
  text(faults, [
    panics ? `${count(panics, "reading")} of a source ended in a panic. Its data is missing here; the log has the reason.` : "",
    skipped ? `${count(skipped, "value")} could not be shown: two sources have the same name, or a value is invalid.` : "",
  ].filter(Boolean).join(" "));
}

// speak tells a screen reader what changed, briefly if it is much.
function speak(news) {
  if (!news.length) return;
  text(spoken, news.length > 3
    ? `${news.length} changes of state`
    : news.map((c) => `${visible(c.name).slice(0, 60)} is now ${stateName(c.to)}`).join(". "));
}

// showAge dims the data if it is old, and says of when it is.
function showAge() {
  const old = model.seq > 0 && (status.dataset.kind === "lost" || model.age > model.oldAfter);
  set(document.body, "data-old", old);
  overview.problems.showTitle(old);
  const what = status.dataset.kind === "lost" ? "Reconnecting" : "No news";
  if (old) text(status, `${what}: data of ${clock(model.at, Date.now())}, ${span(model.age)} ago`);
  else text(status, says);
}
setInterval(showAge, 1000);

let says = status.textContent; // by the feed
const feed = new Feed({
  snapshot(s) {
    const news = model.snapshot(s);
    show();
    speak(news);
    if (!performance.getEntriesByName("weir:shown").length) performance.mark("weir:shown");
  },
  delta(d) {
    const news = model.delta(d);
    show();
    speak(news);
  },
  status(kind, what) {
    set(status, "data-kind", kind);
    says = what;
    showAge();
  },
});

addEventListener("hashchange", route);
addEventListener("keydown", (e) => {
  const typing = e.target instanceof Element && e.target.matches("input");
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "/" && !view) {
    e.preventDefault();
    overview.search.focus();
    overview.search.select();
  } else if (e.key === "Escape" && view) {
    location.hash = "";
  }
});

route();
feed.start();
