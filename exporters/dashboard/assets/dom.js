// All functions that create and change elements. Names of sources may contain anything, so texts are set
// by textContent and attributes only, which cannot turn them into markup.

import { visible } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

// el creates an HTML element. Children that are not nodes become text.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg creates an SVG element.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children);
  return node;
}

// set sets an attribute, or removes it for null and false. It does not write equal values, which would
// cost the browser work.
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

// text sets the text of a node that holds only text.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// name returns an element with the name of a source, isolated from its surroundings for right-to-left
// text.
export function name(value) {
  return el("bdi", {}, visible(value));
}

const LONG = 28; // characters
const END = 14;

// cutName is like name, but CSS cuts a long name in the middle where space is narrow. Similar names
// often differ at their ends. The whole name stays the text of the element. It is shown on focus.
export function cutName(value) {
  const letters = Array.from(visible(value));
  if (letters.length <= LONG) return name(value);
  let at = letters.length - END;
  while (at > 1 && /\s/.test(letters[at - 1] + letters[at])) at--; // a space at a cut would be lost
  const node = el("bdi", { class: "cut" },
    el("span", { class: "start" }, letters.slice(0, at).join("")), el("span", {}, letters.slice(at).join("")));
  return node;
}

// badge shows a state as a shape, a color and a text.
export function badge() {
  const use = svg("use");
  const label = el("span");
  const node = el("span", { class: "badge" }, svg("svg", { class: "shape", "aria-hidden": "true" }, use), label);
  return {
    node,
    show(state, says) {
      set(node, "data-state", state);
      set(use, "href", `#shape-${document.getElementById(`shape-${state}`) ? state : "other"}`);
      text(label, says);
    },
  };
}

// keep makes the nodes the children of parent, in order. It does not move nodes that are in place, so
// that focus and selection stay.
export function keep(parent, nodes) {
  nodes.forEach((node, i) => {
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}
