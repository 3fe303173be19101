/**
 * The channel of a survey: from an input to a symbol, by whole numbers alone.
 *
 * @module
 */

import { SetSelection } from './channels/items.js';
import { Keys } from './channels/keys.js';
import { Orbits, ShortOrbits } from './channels/orbits.js';
import { SampledParts } from './channels/parts.js';
import { NestedLevels, SetLevels, Subset, Tree, Unary } from './channels/sets.js';
import {
  CategoryGrr, Dense, Grr, LevelsTable, LocalHashing, PbGrr, TreeNode, Weighted,
} from './channels/tables.js';
import { must } from './msgpack.js';

/**
 * @typedef {object} Channel
 * @property {number} inputs K, the missing one included and last
 * @property {boolean} tellsInputs whether single inputs are told, as a table of several attributes needs
 * @property {() => import('./channels/keys.js').Ratio} ratio the largest ratio of a symbol's probabilities
 * @property {(x: any, source: import('./random.js').Bytes) => number | Uint8Array} draw of an input, as the form has it
 * @property {(symbol: unknown) => bigint[]} column weights of a symbol for every input, or for the two readings that
 *   stand for all; only ratios matter
 * @property {(categories: number[]) => boolean} fits
 * @property {() => import('./channels/distance.js').Distance} distance
 */

/** @type {Record<string, {keys: string[], new (keys: Keys): Channel}>} */
const KINDS = {
  grr: Grr,
  pbgrr: PbGrr,
  category_grr: CategoryGrr,
  dense: Dense,
  curve: Dense,
  weighted: Weighted,
  levels: LevelsTable,
  tree_node: TreeNode,
  local_hashing: LocalHashing,
  subset: Subset,
  unary: Unary,
  set_levels: SetLevels,
  nested_levels: NestedLevels,
  tree: Tree,
  orbits: Orbits,
  short_orbits: ShortOrbits,
  set: SetSelection,
  parts: SampledParts,
};

/**
 * Return the channel that a map states.
 *
 * @param {import('./msgpack.js').Value} map
 * @returns {Channel}
 * @throws {import('./msgpack.js').Refused} It breaks a rule of its kind.
 */
export function readChannel(map) {
  const keys = new Keys(map);
  const kind = keys.kind();
  must(Object.hasOwn(KINDS, kind), 'an unknown kind of channel');
  keys.exactly(KINDS[kind].keys);
  return new KINDS[kind](keys);
}
