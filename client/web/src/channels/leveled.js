/**
 * Tables whose draw picks a level of groups, and a group on it.
 *
 * @module
 */

import { must } from '../msgpack.js';
import { largest, sum } from './keys.js';
import { fitsLevels, grouped, ofLevels, ranges } from './levels.js';
import { Table, or } from './tables.js';

/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Ratio} Ratio */
/** @typedef {import('./distance.js').Distance} Distance */

/** Randomised response of an input's group, on a level that the draw picks. */
export class LevelsTable extends Table {
  static keys = ['inputs', 'sizes', 't', 'u'];

  /** @param {Keys} keys */
  constructor(keys) {
    const inputs = keys.count('inputs');
    const isTree = keys.items.has('cells');
    const levels = isTree ? ranges(inputs, keys.ints('cells')) : grouped(inputs, keys.ints('sizes'));
    const [t, u] = [keys.ints('t'), keys.ints('u')];
    const depth = levels.counts.length;
    must(t.length === depth && u.length === depth, 'two weights per level');
    must(t.every((each, j) => each > u[j]), 't must be above u');
    const totals = levels.counts.map((n, j) => t[j] + BigInt(n - 1) * u[j]);
    super(inputs, levels.counts.reduce((a, b) => a + b), sum(totals));
    this.isTree = isTree;
    this.levels = levels;
    this.t = t;
    this.u = u;
    this.totals = totals;
    this.tellsInputs = false;
  }

  /** @returns {Ratio[]} */
  odds() {
    return this.t.map((t, j) => [t, this.u[j]]);
  }

  /** @returns {Ratio} */
  ratio() {
    return largest(this.odds());
  }

  /** @param {number} x @param {bigint} d */
  select(x, d) {
    const { counts, of } = this.levels;
    let first = 0;
    let j = 0;
    for (; d >= this.totals[j]; j++) {
      d -= this.totals[j];
      first += counts[j];
    }
    return first + or(d / this.u[j], counts[j], of[j][x]);
  }

  /** @param {number} x @param {number} y */
  weight(x, y) {
    const { counts, of } = this.levels;
    let j = 0;
    for (; y >= counts[j]; j++) y -= counts[j];
    return of[j][x] === y ? this.t[j] : this.u[j];
  }

  /** @param {number[]} categories */
  fits(categories) {
    return fitsLevels(this, categories);
  }

  /** @returns {Distance} */
  distance() {
    return ofLevels(this.levels, this.odds());
  }
}

/** The tree's ranges in place of groups. */
export class TreeNode extends LevelsTable {
  static keys = ['inputs', 'cells', 't', 'u'];
}
