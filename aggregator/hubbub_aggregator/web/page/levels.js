// Trees of labels: the categories level by level, each level's those of what was opened; a heat map's levels as pictures.

import { el, setText, svg } from "./dom.js";
import { PERCENT, isKnown, spelled } from "./format.js";

const SHADES = 8;
const BETWEEN = " / ";

export const isTree = ({ categories }) => categories?.some((row) => row.tree_level) ?? false;

// Two integers make a map; one attribute a tree of labels.
export const isMap = (survey, round) => isTree(round) && (survey.attributes ?? []).length === 2;

// The panels of a tree: the coarsest level, and the parts of every category on the way to the one that is opened.
export function treePanels(categories, opened) {
  const at = (level, label) => categories.find((row) => row.tree_level === level && row.label === label);
  const way = [];
  for (let row = categories.find(({ label }) => label === opened); row; row = at(row.tree_level - 1, row.category)) way.unshift(row);
  const parts = way.map((row) => ({
    title: `In ${row.label}`,
    rows: partsOf(categories, row).map((part) => Object.assign(part, { short: part.label.replace(row.label + BETWEEN, "") })),
  }));
  return [{ title: "Level 1", rows: categories.filter((row) => row.tree_level === 1) }, ...parts].filter(({ rows }) => rows.length);
}

// What a category is split into at the next level; one that is not split stands there again, and is no part of itself.
function partsOf(categories, { label, tree_level: level }) {
  return categories.filter((row) => row.tree_level === level + 1 && row.category === label && row.label !== label);
}

// Which values are in a category, at whatever depth.
export function treeMembers({ categories, values }, chosen) {
  const last = Math.max(...categories.map((row) => row.tree_level));
  let inside = new Set([chosen.label]);
  for (let level = chosen.tree_level + 1; level <= last; level += 1) {
    inside = new Set(categories.filter((row) => row.tree_level === level && inside.has(row.category)).map(({ label }) => label));
  }
  return values.map((row) => inside.has(row.category));
}

// The share of every square at every zoom, darker where it is larger. Cells stand in Morton order: bits of x and y in turn.
export class HeatMap {
  constructor() {
    this.element = el("div", { class: "heatmaps" });
  }

  update(survey, { categories, values }) {
    const [across, up] = survey.attributes.map(({ id }) => id);
    const depth = values[0].tree_level;
    const levels = Array.from({ length: depth }, (_, i) => (i + 1 < depth ? categories.filter((row) => row.tree_level === i + 1) : values));
    this.element.replaceChildren(...levels.map((rows) => picture(rows.slice(0, -1), across, up))); // the last is missing
  }
}

function picture(rows, across, up) {
  const side = Math.sqrt(rows.length);
  const known = rows.filter(isKnown);
  const most = known.reduce((one, row) => (row.estimate > one.estimate ? row : one), known[0]);
  const paths = Array.from({ length: SHADES }, () => []);
  rows.forEach((row, i) => {
    if (!isKnown(row) || row.estimate <= 0) return;
    const [x, y] = [every2nd(i), every2nd(i >> 1)];
    paths[Math.min(SHADES - 1, Math.floor((SHADES * row.estimate) / most.estimate))].push(`M${x} ${side - 1 - y}h1v1h-1z`);
  });
  const words = most ? `${side} x ${side}; the largest share is ${spelled(most, PERCENT).text}: ${most.label}` : `${side} x ${side}`;
  const drawn = svg("svg", { class: "heatmap", viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": `${across} to the right, ${up} upwards, ${words}` },
    ...paths.map((path, shade) => svg("path", { d: path.join(""), "fill-opacity": ((shade + 1) / SHADES).toFixed(3) })));
  const caption = el("figcaption", { class: "small" });
  setText(caption, words);
  return el("figure", {}, drawn, caption);
}

function every2nd(number) {
  let found = 0;
  for (let bit = 0; bit < 8; bit += 1) found |= ((number >> (2 * bit)) & 1) << bit;
  return found;
}
