/**
 * Readings: which values of an attribute are told apart, and by which names.
 *
 * @module
 */

import { MAX_SIZE, allDiffer, title } from '../attribute.js';
import { place } from '../exact.js';
import { array, arrayOf, must, whole } from '../msgpack.js';
import { coin } from '../random.js';

/** Combinations of readings, and of values, that a form may have. */
export const MAX_COMBINATIONS = 2 ** 17;
export const MAX_CELLS = 2 ** 18;

/** @typedef {import('../attribute.js').Attribute} Attribute */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** @param {number[]} mapping */
function rises(mapping) {
  return mapping.every((x, i) => x === i);
}

/**
 * Return an array of indices, or every index by itself where it is nil; nil wherever it may be.
 *
 * @param {Value} value
 * @param {number} size
 * @param {number} most
 */
export function readMapping(value, size, most) {
  if (value === null) return Array.from({ length: size + 1 }, (_, i) => i);
  const found = array(value).map((n) => whole(n, 0, most));
  must(!rises(found), 'nil must be used where it may be');
  must(found.length === size + 1, 'a reading of every index');
  return found;
}

/** Names that differ, the last "missing" and no other. @param {Value[]} listed @param {boolean} withMissing */
export function names(listed, withMissing) {
  const found = listed.map(title);
  const last = found.length - 1;
  must(found.every((name, i) => (name === 'missing') === (withMissing && i === last)), 'missing last');
  must(allDiffer(found), 'names must differ');
}

/** Which values share an input: how many of each. @param {number[]} mapping @param {number} inputs */
export function shares(mapping, inputs) {
  const found = new Array(inputs).fill(0);
  for (const x of mapping) {
    must(x < inputs, 'an input that is none');
    found[x] += 1;
  }
  must(found.every((n) => n >= 1) && found[inputs - 1] === 1, 'a value for every input, missing alone');
  must(mapping.at(-1) === inputs - 1, 'only missing is the last input');
  return found;
}

/** Two readings that stand for all values of a coordinate which no other survey reads. */
export const ALONE = { inputs: [0, 1], shape: [2] };

/** Return the combination of readings of every combination of values, and how many values each has. @param {number[][]} readings */
export function product(readings) {
  let inputs = [0];
  for (const reading of readings) inputs = inputs.flatMap((x) => reading.map((r) => x * count(reading) + r));
  return { inputs, shape: readings.map((reading) => reading.length) };
}

/** Return how many readings there are, missing included. @param {number[]} reading */
export function count(reading) {
  return /** @type {number} */ (reading.at(-1)) + 1;
}

/** Return the reading of every index of an attribute. @param {Attribute} attribute @param {Value[]} pair map and names */
export function readReading(attribute, [map, named]) {
  const reading = readMapping(map, attribute.size(), MAX_SIZE);
  const missing = count(reading) - 1;
  must(missing >= 2, 'two readings, and missing');
  shares(reading, missing + 1);
  if (named === null) must(rises(reading), 'names where values share a reading');
  else names(arrayOf(named, missing), false);
  return reading;
}

/**
 * Return the point of a grid that a number is rounded to: the upper one by its share of the way, exactly.
 *
 * @param {[bigint, number]} x
 * @param {number} low
 * @param {number} high
 * @param {number} points
 * @param {Bytes} source
 */
export function rounded(x, low, high, points, source) {
  const [index, part, all] = place(x, low, high, points);
  return part === 0n ? index : index + (coin(source, part, all) ? 1 : 0);
}
