/**
 * The filter with what no agent of a page asks of it: answers of bundles, and the simplified filter's bound.
 *
 * @module
 */

import { Filter, between, lost, pendingOf, recorded, sized } from './filter.js';
import { must } from './msgpack.js';

/** @typedef {import('./channels/distance.js').Distance} Distance */
/** @typedef {import('./filter.js').Component} Component */

/** Combinations of values that a component may have. */
const MAX_CELLS = 2 ** 18;

/** Return the largest difference of two different cells; -Infinity of one cell. @param {Component} component */
function simplified({ upper, lower }) {
  let found = -Infinity;
  upper.forEach((a, x) => {
    lower.forEach((b, y) => {
      if (x !== y && a - b > found) found = a - b;
    });
  });
  return found;
}

/** Return the largest D of inputs that cells read as. @param {number[]} inputs @param {Distance} distance */
function farthest(inputs, distance) {
  const different = [...new Set(inputs)];
  let found = 0;
  for (const x of different) for (const y of different) found = Math.max(found, between(distance, x, y));
  return found;
}

export class WiderFilter extends Filter {
  /** @param {number} budget @param {boolean} full false for the simplified filter: one number of every query for any two different cells */
  constructor(budget, full) {
    super(budget);
    this.full = full;
  }

  /** @param {Component} component */
  worst(component) {
    if (this.full) return super.worst(component);
    const parts = pendingOf(component, this.distances);
    const any = parts.reduce((n, { inputs, distance, times }) => n + times * farthest(inputs, distance), 0);
    return Math.max(lost(component), simplified(component) + any);
  }

  /**
   * Record a bundle's answer with what is known of the values that its part read; apart from it where one of these is
   * closed, or there are too many combinations. It cannot be refused for its cost: that was reserved.
   *
   * @param {number} ticket
   * @param {number | Uint8Array} symbol
   * @param {number[]} keys coordinates of the part's attributes
   * @returns {'joined' | 'apart'}
   */
  resolve(ticket, symbol, keys) {
    const [held, query] = this.waiting(ticket);
    const moved = query.survey.form.moved?.(symbol);
    must(moved !== undefined, 'no bundle');
    const { column, many, cells } = moved;
    must(keys.length === many && new Set(keys).size === many, 'a coordinate per attribute');
    if (cells === null || keys.some((key) => this.closed.has(key)) || !this.#fits(keys, cells.shape)) {
      this.record(ticket, symbol);
      return 'apart';
    }
    const own = this.over(keys, new Map(keys.map((key, i) => [key, cells.shape[i]])));
    const rest = { ...held, pending: held.pending.filter((each) => each !== query) };
    this.replace(held, rest);
    if (rest.pending.length === 0 && lost(rest) === 0) {
      this.components = this.components.filter((each) => each !== rest); // nothing was ever recorded there
    }
    this.components = [...this.components, recorded(own, keys, cells, column)];
    return 'joined';
  }

  /** Return whether coordinates of these sizes can be one component. @param {number[]} keys @param {number[]} shape */
  #fits(keys, shape) {
    const sizes = this.sizes();
    sized(sizes, keys, shape);
    const joins = this.components.filter((each) => each.keys.some((key) => keys.includes(key)));
    const all = new Set([...keys, ...joins.flatMap((each) => each.keys)]);
    return [...all].reduce((n, key) => n * /** @type {number} */ (sizes.get(key)), 1) <= MAX_CELLS;
  }
}
