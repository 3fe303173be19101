// Elements, made one by one. Text enters as text nodes only: nothing on this page is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// Writes only what changed: an unchanged text keeps the reader's selection and wakes no screen reader.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

// Offers choices of [value, text]; where they are the same as before, what is chosen stays.
export function offer(select, choices) {
  const offered = choices.flat().join("\n");
  if (select.dataset.offered === offered) return;
  select.dataset.offered = offered;
  select.replaceChildren(...choices.map(([value, text]) => {
    const option = el("option", { value });
    setText(option, text);
    return option;
  }));
}
