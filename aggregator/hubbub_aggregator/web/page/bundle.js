// A bundle of tables: one of them at a time, which of its cells lie in a margin's reading, and the reports about each part.

import { el, offer, setText, show } from "./dom.js";
import { count } from "./format.js";
import { TextTable } from "./texttable.js";

const BETWEEN = " × ";

export const isBundle = ({ table }) => Boolean(table?.channel);

// The tables of a bundle: names, the attributes by place, and where the values of each begin and end.
function tablesOf({ table }) {
  let end = 0;
  return table.tables.map((members) => {
    const sizes = members.map((member) => table.attributes[member].readings.length + 1);
    const begin = end;
    end += sizes.reduce((product, size) => product * size, 1);
    return { name: members.map((member) => table.attributes[member].id).join(BETWEEN), members, sizes, begin, end };
  });
}

// Whether each value lies in a reading of an attribute: by its place in its table, the last attribute fastest.
export function inReading(survey, attribute, reading) {
  return tablesOf(survey).flatMap(({ members, sizes, begin, end }) => {
    const at = members.indexOf(attribute);
    const faster = sizes.slice(at + 1).reduce((product, size) => product * size, 1);
    return Array.from({ length: end - begin }, (_, i) => at >= 0 && Math.floor(i / faster) % sizes[at] === reading);
  });
}

// The choice of a table.
export class TableChoice {
  constructor(onChoice) {
    this.element = el("select", { "aria-label": "Table shown", hidden: true });
    this.element.addEventListener("change", onChoice);
  }

  // Offers the tables of a bundle; returns the one that is chosen, or null where there are none.
  update(survey) {
    show(this.element, isBundle(survey));
    if (!isBundle(survey)) return null;
    const tables = tablesOf(survey);
    offer(this.element, tables.map(({ name }) => [name, name]));
    return tables[this.element.selectedIndex] ?? tables[0];
  }
}

// What the public coin gave each part, and what came.
export class Parts {
  constructor() {
    this.table = new TextTable("Reports about each part", ["Part", "Reports", "Expected", "Chance of so many"], [0]);
    const words = el("p", { class: "small" });
    setText(words, "A device answers one part, which a public coin picks whatever it holds. Many more reports than expected about one part are forged: each of them moves its tables by more.");
    this.element = el("section", { class: "statistics parts", "aria-label": "Parts" }, this.table.element, words);
  }

  update({ parts = [] }) {
    show(this.element, parts.length > 0);
    this.table.update(parts.map(({ attributes, tells, reports, expected, p_value: chance }) => [
      attributes.join(BETWEEN) + (tells ? `, ${tells}` : ""), count(reports), count(Math.round(expected)), chance < 0.001 ? chance.toExponential(0) : chance.toFixed(3)]));
  }
}
