/**
 * D of two inputs, in the filter's units: by the blocks that they lie in.
 *
 * @module
 */

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
