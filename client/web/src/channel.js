/**
 * The channel of a survey: from an input to a symbol, by whole numbers alone.
 *
 * @module
 */

import { Keys } from './channels/keys.js';
import { must } from './msgpack.js';

/**
 * @typedef {object} Drawn
 * @property {number} inputs K, the missing one included and last
 * @property {boolean} tellsInputs whether single inputs are told, as a table of several attributes needs
 * @property {() => import('./channels/keys.js').Ratio} ratio the largest ratio of a symbol's probabilities
 * @property {(x: any, source: import('./random.js').Bytes) => number | Uint8Array} draw of an input, as the form has it
 * @property {(symbol: unknown) => bigint[]} column weights of a symbol for every input, or for the two readings that
 *   stand for all; only ratios matter
 * @property {(categories: number[]) => boolean} fits
 * @property {() => import('./channels/distance.js').Distance} distance
 * @property {() => Pick<Drawn, 'inputs' | 'column' | 'distance'>} [alone] what a filter reads where inputs are many
 */

const hashing = () => import('./channels/hashing.js');
const items = () => import('./channels/items.js');
const leveled = () => import('./channels/leveled.js');
const orbits = () => import('./channels/orbits.js');
const parts = () => import('./channels/parts.js');
const sets = () => import('./channels/sets.js');
const tables = () => import('./channels/tables.js');

/** A channel, and the name of its kind. @typedef {Drawn & {kind: string}} Channel */

/** Kinds by name; a page loads those that it meets. @type {Record<string, () => Promise<{keys: string[], more?: string, new (keys: Keys): Drawn}>>} */
const KINDS = {
  grr: async () => (await tables()).Grr,
  pbgrr: async () => (await tables()).PbGrr,
  category_grr: async () => (await tables()).CategoryGrr,
  dense: async () => (await tables()).Dense,
  curve: async () => (await tables()).Dense,
  weighted: async () => (await tables()).Weighted,
  levels: async () => (await leveled()).LevelsTable,
  tree_node: async () => (await leveled()).TreeNode,
  local_hashing: async () => (await hashing()).LocalHashing,
  subset: async () => (await sets()).Subset,
  unary: async () => (await sets()).Unary,
  set_levels: async () => (await sets()).SetLevels,
  nested_levels: async () => (await sets()).NestedLevels,
  tree: async () => (await sets()).Tree,
  orbits: async () => (await orbits()).Orbits,
  short_orbits: async () => (await orbits()).ShortOrbits,
  set: async () => (await items()).SetSelection,
  parts: async () => (await parts()).SampledParts,
};

/**
 * Return the channel that a map states.
 *
 * @param {import('./msgpack.js').Value} map
 * @returns {Promise<Channel>}
 * @throws {import('./msgpack.js').Refused} It breaks a rule of its kind.
 */
export async function readChannel(map) {
  const keys = new Keys(map);
  const kind = keys.kind();
  must(Object.hasOwn(KINDS, kind), 'an unknown kind of channel');
  const Kind = await KINDS[kind]();
  keys.exactly(Kind.more && keys.has(Kind.more) ? [...Kind.keys, Kind.more] : Kind.keys);
  return Object.assign(new Kind(keys), { kind });
}
