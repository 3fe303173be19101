/**
 * Inputs that are grouped on levels, each finer than the one before, the single inputs last.
 *
 * @module
 */

import { unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { MAX_BLOCKS, constant } from './distance.js';
import { labels, same } from './keys.js';

/**
 * @typedef {object} Levels
 * @property {number[][]} of per level, the group of every input
 * @property {number[]} counts per level, how many groups it has
 */

const MAX_LEVELS = 16;

/**
 * Return levels from the sizes of their groups, the single inputs not among them.
 *
 * @param {number} inputs
 * @param {number[][]} sizes
 * @returns {Levels}
 */
function levels(inputs, sizes) {
  must(sizes.length >= 1 && sizes.length < MAX_LEVELS, 'two to sixteen levels');
  const of = [];
  const counts = [];
  /** @type {Set<number>} */
  let ends = new Set();
  for (const level of sizes) {
    let sum = 0;
    const finer = new Set(level.map((size) => (sum += size)));
    must(level.every((size) => size >= 1) && sum === inputs, 'sizes must sum to K');
    must([...ends].every((end) => finer.has(end)), 'each level must keep all ends');
    must(finer.size > ends.size && finer.size >= 2, 'each level must split');
    of.push(labels(level));
    counts.push(level.length);
    ends = finer;
  }
  must(ends.size < inputs, 'groups of several inputs');
  of.push(Array.from({ length: inputs }, (_, x) => x));
  counts.push(inputs);
  return { of, counts };
}

/**
 * Return levels from one list of the sizes of all groups, level by level.
 *
 * @param {number} inputs
 * @param {bigint[]} list
 */
export function grouped(inputs, list) {
  /** @type {number[][]} */
  const found = [];
  /** @type {number[]} */
  let level = [];
  let sum = 0n;
  for (const size of list) {
    sum += size;
    must(sum <= BigInt(inputs), 'sizes must sum to K');
    level.push(Number(size));
    if (sum === BigInt(inputs)) {
      found.push(level);
      level = [];
      sum = 0n;
    }
  }
  must(level.length === 0 && inputs >= 2, 'sizes must sum to K');
  return levels(inputs, found);
}

/**
 * Return levels of ranges of the numbers; the missing input is a group of its own on each.
 *
 * @param {number} inputs
 * @param {bigint[]} cells how many ranges each level has
 */
export function ranges(inputs, cells) {
  const points = inputs - 1;
  must(cells.at(-1) === BigInt(points) && points >= 2, 'cells must end at the numbers');
  must(cells.length <= MAX_LEVELS, 'two to sixteen levels');
  const inner = cells.slice(0, -1);
  must(inner.every((n) => n < BigInt(points)), 'fewer ranges than numbers');
  must(inner.every((n, j) => j === 0 || n % inner[j - 1] === 0n), 'ranges must divide the next');
  const sizes = inner.map(Number).map((n) => {
    /** @param {number} i */
    const start = (i) => Math.floor((i * points) / n);
    return [...Array.from({ length: n }, (_, i) => start(i + 1) - start(i)), 1];
  });
  return levels(inputs, sizes);
}

/**
 * Return D of inputs that are grouped on levels: the largest of the levels at which they are apart.
 *
 * @param {Levels} levels
 * @param {import('./keys.js').Ratio[]} odds per level
 * @returns {import('./distance.js').Distance}
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
 * Return whether categories are a level's groups; of a tree, whether all numbers are together.
 *
 * @param {{isTree: boolean, levels: Levels}} channel
 * @param {number[]} categories
 */
export function fitsLevels({ isTree, levels }, categories) {
  if (isTree) return categories.at(-2) === 0;
  return levels.of.some((level) => same(level, categories));
}
