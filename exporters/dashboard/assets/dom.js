// The few ways in which this page makes and changes elements. Names of sources are
// whatever somebody called them, so all text goes through textContent and
// attributes: nothing here can turn it into markup.

const SVG = "http://www.w3.org/2000/svg";

// el makes an HTML element. Children are nodes, or anything else as text.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg makes an SVG element.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children);
  return node;
}

// set gives an attribute a value, and takes it away for null and false. What is
// right already is left alone: writing it again would make the browser work.
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

// text says something else in a node that holds only text.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// name shows the name of a source: kept apart from its surroundings, whatever
// direction it is written in.
export function name(value) {
  return el("bdi", {}, value === "" ? "(no name)" : value);
}

// badge shows a state as shape, colour and text.
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

// keep brings the children of a node into the order of a list, without moving those
// that stand right: focus and selection stay where they are.
export function keep(parent, nodes) {
  nodes.forEach((node, i) => {
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}
