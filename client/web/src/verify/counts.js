/**
 * The public counts of a release: their one encoding, and whether they can be those of so many reports.
 *
 * @module
 */

import { SetSelection } from '../channels/items.js';
import { Orbits } from '../channels/orbits.js';
import { SampledParts } from '../channels/parts.js';
import { SetLevels, Subset, Tree, Unary } from '../channels/sets.js';
import { array, arrayOf, binary, equal, integer, must, read, text, write } from '../msgpack.js';

/** @typedef {import('../survey.js').Survey} Survey */

const MAX_CELLS = 2 ** 24;
const MOST = 2n ** 53n - 1n;

/**
 * @typedef {object} Counts
 * @property {Uint8Array} digest
 * @property {number} round from 0
 * @property {string} kind "bins" or "support"
 * @property {number} n reports
 * @property {number[]} cells
 */

/**
 * Return the counts of bytes, which may come from anybody.
 *
 * @param {Uint8Array} data
 * @returns {Counts}
 * @throws {import('../msgpack.js').Refused} They are not the one encoding of counts.
 */
export function readCounts(data) {
  const value = read(data);
  must(equal(write(value), data), 'another encoding');
  const [name, layout, digest, round, kind, n, packed] = arrayOf(value, 7);
  must(text(name) === 'hubbub-counts', 'no counts');
  integer(layout, 1n, 1n);
  must(binary(digest).length === 16, 'a digest of 16 bytes');
  must(text(kind) === 'bins' || text(kind) === 'support', 'an unknown kind of counts');
  const reports = Number(integer(n, 1n, MOST));
  const cells = [];
  let [cell, unit] = [0, 1];
  for (const byte of binary(packed)) {
    cell += (byte & 0x7f) * unit;
    unit *= 128;
    must(cell <= reports && unit <= 2 ** 56, 'a cell above n');
    if (byte >= 0x80) continue;
    must(byte > 0 || unit === 128, 'a cell in more bytes than it takes');
    cells.push(cell);
    [cell, unit] = [0, 1];
  }
  must(unit === 1 && cells.length >= 1 && cells.length <= MAX_CELLS, 'cells, the last one whole');
  return {
    digest: binary(digest),
    round: Number(integer(round, 0n, MOST)),
    kind: text(kind),
    n: reports,
    cells,
  };
}

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {number[]} numbers */
export function sum(numbers) {
  let found = 0;
  for (const each of numbers) found += each;
  return found;
}

/**
 * Return how many bins a survey's counts have, and whether these can be those of n reports.
 *
 * @param {Survey} survey
 * @param {Counts} counts
 * @returns {{bins: number, agree: boolean}}
 */
export function binsOf({ channel }, { cells, n }) {
  const { outputs } = /** @type {{outputs?: number}} */ (channel);
  if (outputs !== undefined) return { bins: outputs, agree: cells.length === outputs && sum(cells) === n };
  if (channel instanceof Orbits) {
    const bins = channel.orbits.length * (1 + channel.inputs);
    return { bins, agree: cells.length === bins && orbitsAgree(channel, cells, n) };
  }
  if (channel instanceof Subset || channel instanceof Unary) {
    const due = channel instanceof Subset ? channel.sets.size * n : sum(cells);
    return { bins: channel.inputs, agree: cells.length === channel.inputs && sum(cells) === due };
  }
  if (channel instanceof SetSelection) {
    return { bins: channel.bins, agree: cells.length === channel.bins && sum(cells) === channel.size * n };
  }
  if (channel instanceof SampledParts) {
    let end = channel.sets.length;
    const reports = cells.slice(0, end);
    const whole = channel.sets.every((sets, part) => {
      const own = cells.slice(end, (end += sets.inputs));
      return sets.agrees(own, reports[part]) && own.every((cell) => cell <= reports[part]);
    });
    return { bins: end, agree: cells.length === end && sum(reports) === n && whole };
  }
  must(channel instanceof SetLevels || channel instanceof Tree, 'a kind of channel that this checker does not know');
  const { levels, sets } = channel;
  let at = sets.length;
  const named = cells.slice(0, at);
  const whole = levels.counts.every((many, j) => {
    const held = sum(cells.slice(at, (at += many)));
    return held === named[j] * sets[j].size;
  });
  return { bins: channel.cells, agree: cells.length === channel.cells && sum(named) === n && whole };
}

/** @param {Orbits} channel @param {number[]} cells @param {number} n */
function orbitsAgree(channel, cells, n) {
  const width = 1 + channel.inputs;
  let reports = 0;
  return channel.orbits.every((orbit, t) => {
    const [many, ...held] = cells.slice(t * width, (t + 1) * width);
    reports += many;
    const hits = channel.classes.map(() => 0);
    channel.values.forEach((c, x) => (hits[channel.classOf[c]] += held[x]));
    const due = orbit.counts.every((part, g) => hits[g] === many * sum(part));
    const missing = !channel.hasMissing || held[channel.inputs - 1] === (orbit.missing ? many : 0);
    return due && missing && held.every((each) => each <= many);
  }) && reports === n;
}

/**
 * Return whether supports of inputs, and the histograms of categories after them, can be those of n reports.
 *
 * @param {import('./hashed.js').Hashed} hashed
 * @param {number[][]} rows
 * @param {Counts} counts
 */
export function supportsAgree(hashed, rows, { cells, n }) {
  let at = hashed.inputs;
  for (const members of rows.flatMap(membersOf)) {
    if (members.length === 1) continue;
    const sizes = cells.slice(at, (at += hashed.held(members).reduce((a, b) => Math.max(a, b)) + 1));
    const many = sum(sizes.map((count, size) => size * count));
    if (sum(sizes) !== n || many !== sum(members.map((x) => cells[x]))) return false;
  }
  return at === cells.length;
}

/** Return the places of every group, of which none is empty. @param {number[]} row */
export function membersOf(row) {
  /** @type {number[][]} */
  const found = [];
  row.forEach((group, x) => (found[group] ??= []).push(x));
  return found;
}
