/**
 * Parts of a bundle: a table of a few attributes, picked by a coin that knows no value, answered by a subset.
 *
 * @module
 */

import { unitsUp } from '../exact.js';
import { must } from '../msgpack.js';
import { WORD, attempt } from '../random.js';
import { constant, packed, unpacked } from './distance.js';
import { MAX_INPUTS, largest, sum } from './keys.js';
import { LatinSets } from './latin.js';
import { Sets } from './sets.js';

/** @typedef {import('./keys.js').Ratio} Ratio */

const MAX_ATTRIBUTES = 32;
const MAX_ORDER = 4;
const MAX_PARTS = 4096;
const MAX_COMBINATIONS = 2n ** 62n;
const MAX_COUNTS = 2 ** 18;

/** Return every set of some attributes but the empty one, as text. @param {number[]} members */
function components(members) {
  const found = members.reduce(
    (known, member) => [...known, ...known.map((own) => [...own, member])],
    [/** @type {number[]} */ ([])],
  );
  return found.slice(1).map(String);
}

/** An input is a part and the cell of its table. */
export class SampledParts {
  static keys = ['readings', 'orders', 'members', 'shares', 'subset', 'held'];
  /** A key where a part is an interaction of two attributes. */
  static more = 'classes';
  tellsInputs = false;

  /** @param {import('./keys.js').Keys} keys */
  constructor(keys) {
    const [readings, orders, members, shares, size, held] = SampledParts.keys.map((name) => keys.ints(name));
    must(readings.length >= 2 && readings.length <= MAX_ATTRIBUTES, '2 to 32 attributes');
    must(readings.every((n) => n >= 2n && n <= BigInt(MAX_INPUTS)), 'two readings and more');
    must(readings.reduce((a, b) => a * b) <= MAX_COMBINATIONS, 'at most 2^62 combinations');
    must(orders.length <= MAX_PARTS && orders.every((n) => n <= MAX_ORDER), 'tables of one to four');
    const classes = keys.has('classes') ? keys.ints('classes') : orders.map(() => 1n);
    must(!keys.has('classes') || classes.some((g) => g > 1n), 'classes of an interaction');
    must([shares, size, held, classes].every((list) => list.length === orders.length), 'integers of every part');
    must(sum(orders) === BigInt(members.length) && sum(shares) === WORD, 'shares of 2^32');
    /** Readings of each attribute, missing included. */
    this.readings = readings.map(Number);
    let at = 0;
    /** The attributes of each part, counted from 0. */
    this.members = orders.map((order) => {
      const own = members.slice(at, (at += Number(order))).map((n) => Number(n) - 1);
      must(own.every((n, i) => n < readings.length && (i === 0 || own[i - 1] < n)), 'attributes that rise');
      return own;
    });
    /** Whether each part is an interaction: it tells of its attributes how they go together, and no more. */
    this.interacts = classes.map((g) => g > 1n);
    must(new Set(this.members.map((own, j) => `${own} ${this.interacts[j]}`)).size === orders.length, 'parts must differ');
    must(new Set(this.members.flat()).size === readings.length, 'every attribute in a part');
    this.shares = shares.map(Number);
    const cells = this.members.map((own) => own.reduce((n, member) => n * this.readings[member], 1));
    must(cells.every((n) => n <= MAX_INPUTS), 'too many cells of a part');
    /** In their place parts, and the cells of all their tables: the product of all readings is never built. */
    this.inputs = cells.reduce((a, b) => a + b, cells.length);
    must(this.inputs <= MAX_COUNTS, 'at most 2^18 counts');
    this.sets = cells.map((n, j) => {
      const shape = this.members[j].map((member) => this.readings[member]);
      return this.interacts[j] ? new LatinSets(shape, size[j], held[j], classes[j]) : new Sets(n, size[j], held[j]);
    });
    this.head = orders.length <= 256 ? 1 : 2;
    this.width = this.head + Math.ceil(Math.max(...cells) / 8);
  }

  /** Return whether parts tell every component of tables. @param {number[][]} tables */
  tell(tables) {
    const told = new Set(this.members.flatMap((own, j) => (this.interacts[j] ? [String(own)] : components(own))));
    return tables.every((table) => components(table).every((own) => told.has(own)));
  }

  /** @returns {Ratio} */
  ratio() {
    return largest(this.sets.map((sets) => sets.odds()));
  }

  /** Return the part that a toss picks. @param {number} toss */
  part(toss) {
    let j = 0;
    for (; toss >= this.shares[j]; j++) toss -= this.shares[j];
    return j;
  }

  /** @param {number[]} input a part, and the cell of its table @param {import('../random.js').Bytes} source */
  draw([part, cell], source) {
    const sets = this.sets[part];
    const found = new Uint8Array(this.width);
    for (let i = 0; i < this.head; i++) found[i] = part >> (8 * i);
    found.set(packed(sets.chosen(cell, attempt(source, sets.limits()))), this.head);
    return found;
  }

  /** Return the part of a symbol, and the weights of every cell of its table. @param {unknown} symbol */
  told(symbol) {
    must(symbol instanceof Uint8Array && symbol.length === this.width, 'a symbol of another length');
    const part = this.head === 1 ? symbol[0] : symbol[0] + 256 * symbol[1];
    must(part < this.sets.length, 'no part');
    const sets = this.sets[part];
    const end = this.head + Math.ceil(sets.inputs / 8);
    must(symbol.subarray(end).every((byte) => byte === 0), 'bits after the last');
    const own = unpacked(symbol.subarray(this.head, end), sets.inputs);
    must(sets.agrees(own.map(Number), 1), 'a set of another size');
    return { part, column: sets.weights(own, [...own.keys()]) };
  }

  /** Return the weights of two readings, which stand for all values: at best and at worst. @param {unknown} symbol */
  column(symbol) {
    return this.sets[this.told(symbol).part].odds();
  }

  fits() {
    return false;
  }

  distance() {
    return constant(2, unitsUp(...this.ratio()));
  }
}
