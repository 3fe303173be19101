/**
 * D of two inputs, in the filter's units: by the blocks that they lie in.
 *
 * @module
 */

import { unitsUp } from '../exact.js';
import { must } from '../msgpack.js';

/** With more blocks than this the largest D stands for all. */
export const MAX_BLOCKS = 1024;

/**
 * @typedef {object} Distance
 * @property {number[]} block of every input
 * @property {number[]} within of two different inputs of a block
 * @property {number[][]} across of inputs of two blocks
 */

/**
 * Return one D for all pairs of inputs.
 *
 * @param {number} inputs
 * @param {number} units
 * @returns {Distance}
 */
export function constant(inputs, units) {
  return { block: new Array(inputs).fill(0), within: [units], across: [[units]] };
}

/**
 * Return D of inputs that are grouped on levels: the largest of the levels at which they are apart.
 *
 * @param {import('../levels.js').Levels} levels
 * @param {import('./keys.js').Ratio[]} odds per level
 * @returns {Distance}
 */
export function ofLevels({ of, counts }, odds) {
  const units = odds.map(([n, d]) => unitsUp(n, d));
  const depth = units.length;
  const below = units.map((_, j) => Math.max(...units.slice(j)));
  const groups = counts[depth - 2];
  if (groups > MAX_BLOCKS) return constant(of[0].length, below[0]);
  const last = of[depth - 2];
  const first = Array.from({ length: groups }, (_, b) => last.indexOf(b));
  const across = first.map((x) =>
    first.map((y) => below[Math.min(of.filter((level) => level[x] === level[y]).length, depth - 1)]),
  );
  return { block: last, within: new Array(groups).fill(below[depth - 1]), across };
}

/**
 * Return a symbol's cells, one boolean each.
 *
 * @param {unknown} symbol
 * @param {number} cells
 */
export function unpacked(symbol, cells) {
  must(symbol instanceof Uint8Array && symbol.length === Math.ceil(cells / 8), 'a symbol of another length');
  /** @param {number} i */
  const bit = (i) => ((symbol[i >> 3] >> (i & 7)) & 1) === 1;
  for (let i = cells; i < 8 * symbol.length; i++) must(!bit(i), 'bits after the last');
  return Array.from({ length: cells }, (_, i) => bit(i));
}

/** Return cells as a set's bytes. @param {boolean[]} held */
export function packed(held) {
  const found = new Uint8Array(Math.ceil(held.length / 8));
  held.forEach((isIn, i) => {
    if (isIn) found[i >> 3] |= 1 << (i & 7);
  });
  return found;
}
