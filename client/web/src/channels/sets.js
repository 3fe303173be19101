/**
 * Channels whose symbol is a set of cells, drawn by attempts of words.
 *
 * @module
 */

import { unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { WORD, attempt, below } from '../random.js';
import { constant, packed, unpacked } from './distance.js';
import { MAX_INPUTS, largest, sum } from './keys.js';
import { fitsLevels, grouped, ofLevels, ranges } from './levels.js';

/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Ratio} Ratio */
/** @typedef {import('./distance.js').Distance} Distance */
/** @typedef {import('../random.js').Bytes} Bytes */

const COIN = 2n ** 31n;
const MAX_CELLS = 2 ** 18;
const ALL = 2 ** 32;

/** @param {number} inputs */
function mustBeInputs(inputs) {
  must(inputs >= 2 && inputs <= MAX_INPUTS, 'inputs out of range');
}

/** @param {boolean[]} held */
function count(held) {
  return held.filter(Boolean).length;
}

/** Sets of one size, that hold the input by `held` of 2^32. */
export class Sets {
  /** @param {number} inputs @param {bigint} size @param {bigint} held */
  constructor(inputs, size, held) {
    must(size < BigInt(inputs) && held < WORD, 'sizes of 1 to K - 1');
    this.inputs = inputs;
    this.size = Number(size);
    this.held = Number(held);
    const [inside, outside] = this.odds();
    must(inside > outside, 'the true value must be favoured');
  }

  /** Return the weights of an input in the set and of one that is not. @returns {Ratio} */
  odds() {
    const [k, d, held] = [BigInt(this.inputs), BigInt(this.size), BigInt(this.held)];
    return [held * (k - d), (WORD - held) * d];
  }

  /** @returns {number[]} */
  limits() {
    const found = [ALL];
    for (let m = this.inputs - this.size; m < this.inputs; m++) found.push(ALL - (ALL % m));
    return found;
  }

  /** @param {number} x @param {number[]} words */
  chosen(x, words) {
    const inside = words[0] < this.held;
    /** @type {boolean[]} */
    const held = new Array(this.inputs).fill(false);
    for (let i = inside ? 1 : 0; i < this.size; i++) {
      const j = this.inputs - 1 - this.size + i;
      const label = words[i + 1] % (j + 1);
      held[held[label] ? j : label] = true;
    }
    held[this.inputs - 1] = held[x];
    held[x] = inside;
    return held;
  }

  /** Return whether counts of cells can be those of n sets. @param {number[]} cells @param {number} n */
  agrees(cells, n) {
    return cells.reduce((a, b) => a + b, 0) === n * this.size;
  }

  /** @param {boolean[]} held @param {number[]} groups of every input */
  weights(held, groups) {
    const [inside, outside] = this.odds();
    return groups.map((group) => (held[group] ? inside : outside));
  }
}

/** Subset selection. */
export class Subset {
  static keys = ['inputs', 'size', 'held'];
  tellsInputs = true;

  /** @param {Keys} keys */
  constructor(keys) {
    this.inputs = keys.count('inputs');
    mustBeInputs(this.inputs);
    this.sets = new Sets(this.inputs, keys.int('size'), keys.int('held'));
  }

  /** @returns {Ratio} */
  ratio() {
    return this.sets.odds();
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    return packed(this.sets.chosen(x, attempt(source, this.sets.limits())));
  }

  /** @param {unknown} symbol */
  column(symbol) {
    const held = unpacked(symbol, this.inputs);
    must(count(held) === this.sets.size, 'a set of another size');
    return this.sets.weights(held, [...held.keys()]);
  }

  fits() {
    return true;
  }

  /** @returns {Distance} */
  distance() {
    return constant(this.inputs, unitsUp(...this.ratio()));
  }
}

/** Unary encoding: a bit for every input. */
export class Unary {
  static keys = ['inputs', 'held', 'other'];
  tellsInputs = true;

  /** @param {Keys} keys */
  constructor(keys) {
    this.inputs = keys.count('inputs');
    mustBeInputs(this.inputs);
    this.held = keys.int('held');
    this.other = keys.int('other');
    must(this.other < this.held && this.held < COIN, 'other < held < 2^31');
  }

  /** @returns {Ratio} */
  ratio() {
    return [this.held * (COIN - this.other), (COIN - this.held) * this.other];
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    const words = attempt(source, new Array(this.inputs).fill(ALL));
    const [held, other] = [Number(this.held), Number(this.other)];
    return packed(words.map((word, y) => word % Number(COIN) < (y === x ? held : other)));
  }

  /** @param {unknown} symbol */
  column(symbol) {
    const [inside, outside] = this.ratio();
    return unpacked(symbol, this.inputs).map((isIn) => (isIn ? inside : outside));
  }

  fits() {
    return true;
  }

  /** @returns {Distance} */
  distance() {
    return constant(this.inputs, unitsUp(...this.ratio()));
  }
}

/** Levels of groups, a set of each. */
class SharedLevels {
  tellsInputs = false;

  /** @param {Keys} keys @param {boolean} isTree */
  constructor(keys, isTree) {
    this.inputs = keys.count('inputs');
    this.isTree = isTree;
    this.levels = isTree
      ? ranges(this.inputs, keys.ints('cells'))
      : grouped(this.inputs, keys.ints('sizes'));
    mustBeInputs(this.inputs);
    const { counts } = this.levels;
    const [shares, size, held] = [keys.ints('shares'), keys.ints('subset'), keys.ints('held')];
    must([shares, size, held].every((list) => list.length === counts.length), 'three integers per level');
    must(sum(shares) === WORD, 'shares of 2^32');
    this.cells = counts.length + counts.reduce((a, b) => a + b);
    must(this.cells <= MAX_CELLS, 'at most 2^18 cells');
    this.shares = shares.map(Number);
    this.sets = counts.map((n, j) => new Sets(n, size[j], held[j]));
  }

  /** @returns {Ratio} */
  ratio() {
    return largest(this.sets.map((sets) => sets.odds()));
  }

  /** Return the level that a word means. @param {number} word */
  level(word) {
    let j = 0;
    for (; word >= this.shares[j]; j++) word -= this.shares[j];
    return j;
  }

  /** @param {number[]} categories */
  fits(categories) {
    return fitsLevels(this, categories);
  }

  /** @returns {Distance} */
  distance() {
    return ofLevels(this.levels, this.sets.map((sets) => sets.odds()));
  }
}

/** Groups on levels; the words of every level are taken. */
export class SetLevels extends SharedLevels {
  static keys = ['inputs', 'sizes', 'shares', 'subset', 'held'];

  /** @param {Keys} keys */
  constructor(keys) {
    super(keys, false);
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    const words = attempt(source, [ALL, ...this.sets.flatMap((sets) => sets.limits())]);
    const level = this.level(words[0]);
    const held = this.sets.map((_, j) => j === level);
    let at = 1;
    this.sets.forEach((sets, j) => {
      const own = words.slice(at, at + 1 + sets.size);
      at += own.length;
      const none = new Array(sets.inputs).fill(false);
      held.push(...(j === level ? sets.chosen(this.levels.of[j][x], own) : none));
    });
    return packed(held);
  }

  /** @param {unknown} symbol */
  column(symbol) {
    const held = unpacked(symbol, this.cells);
    const depth = this.sets.length;
    const named = held.slice(0, depth);
    must(count(named) === 1, 'one level');
    const level = named.indexOf(true);
    const { counts, of } = this.levels;
    const first = depth + counts.slice(0, level).reduce((a, b) => a + b, 0);
    const own = held.slice(first, first + counts[level]);
    const { size } = this.sets[level];
    must(count(own) === size && count(held) === size + 1, 'another set');
    return this.sets[level].weights(own, of[level]);
  }
}

/** Ranges on levels; the words of the picked level alone are taken. */
export class Tree extends SharedLevels {
  static keys = ['inputs', 'cells', 'shares', 'subset', 'held'];

  /** @param {Keys} keys @param {boolean} [isTree] */
  constructor(keys, isTree = true) {
    super(keys, isTree);
    this.width = 1 + Math.ceil(this.inputs / 8);
  }

  /** @param {number} x @param {Bytes} source */
  draw(x, source) {
    const level = this.level(Number(below(source, WORD)));
    const sets = this.sets[level];
    const found = new Uint8Array(this.width);
    found[0] = level;
    found.set(packed(sets.chosen(this.levels.of[level][x], attempt(source, sets.limits()))), 1);
    return found;
  }

  /** @param {unknown} symbol */
  column(symbol) {
    must(symbol instanceof Uint8Array && symbol.length === this.width, 'a symbol of another length');
    const [level] = symbol;
    must(level < this.sets.length, 'no level');
    const cells = this.levels.counts[level];
    const end = 1 + Math.ceil(cells / 8);
    must(symbol.subarray(end).every((byte) => byte === 0), 'bits after the last');
    const own = unpacked(symbol.subarray(1, end), cells);
    must(count(own) === this.sets[level].size, 'a set of another size');
    return this.sets[level].weights(own, this.levels.of[level]);
  }
}

/** Groups on levels, drawn as a tree's ranges are. */
export class NestedLevels extends Tree {
  static keys = SetLevels.keys;

  /** @param {Keys} keys */
  constructor(keys) {
    super(keys, false);
  }
}
