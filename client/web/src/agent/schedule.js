/**
 * The schedule of a device's answers: decided by public facts and the clock, never by a value or an output.
 *
 * A slot is an answer that costs budget: one for every round, or MEMOISED alone where every attribute is static.
 *
 * @module
 */

/** @typedef {import('../survey.js').Survey} Survey */

export const MEMOISED = -1;
/** Forms that read a static value as others do: what they say of it merges. */
export const MERGED = ['single', 'table', 'tree'];
/** Forms whose answers this agent makes; bundles are read by the core, and refused here. */
export const FORMS = [...MERGED, 'set', 'score', 'key_value', 'transition'];

/** @param {Uint8Array} bytes */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {string} digits */
export function unhex(digits) {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** Return how many inputs a survey counts as in a list: the entries of the maps that reading it builds, of hashes few. @param {Survey} survey */
export function listedInputs({ attributes, channel, form }) {
  const values = attributes.map((each) => ('labels' in each.domain ? each.domain.labels.length : each.domain.type === 'integer' && !channel.alone ? each.size() : 0));
  return Math.max(channel.alone ? (form.mapping?.length ?? 0) : channel.inputs, ...values);
}

/** @param {Survey} survey */
export function isStatic(survey) {
  return survey.attributes.every(({ kind }) => kind === 'static');
}

/** Return the round that is open, null for none. @param {Survey} survey @param {number} now_s */
export function roundAt({ start_s, round_s, rounds }, now_s) {
  const found = Math.floor((now_s - start_s) / round_s);
  return found >= 0 && found < rounds ? found : null;
}

/** Return the highest round that is over, -1 for none. @param {Survey} survey @param {number} now_s */
export function lastClosed(survey, now_s) {
  const open = now_s < survey.start_s ? 0 : roundAt(survey, now_s);
  // No round of a transition can be answered before its lag is over.
  return open === null ? survey.rounds - 1 : Math.max(open, survey.form.lag ?? 0) - 1;
}

/** Return whether a device answers in a round. @param {Survey} survey @param {number} round @param {Uint8Array | null} seed */
export function isDrawn({ rotation, slotInCycle }, round, seed) {
  return seed === null || round % rotation === slotInCycle?.(seed, Math.floor(round / rotation), rotation);
}

/**
 * Return the slots after the last round that is over.
 *
 * @param {Survey} survey
 * @param {number} last
 * @param {Uint8Array | null} seed of a survey that rotates
 * @returns {number[]}
 */
export function slotsAfter(survey, last, seed) {
  if (last + 1 >= survey.rounds) return [];
  if (isStatic(survey)) return [MEMOISED];
  const every = Array.from({ length: survey.rounds - last - 1 }, (_, i) => last + 1 + i);
  return every.filter((round) => isDrawn(survey, round, seed));
}

/** Return how many slots there may be, whatever the seed: a device must not be judged by what it drew. @param {Survey} survey @param {number} last */
export function mostSlots(survey, last) {
  if (last + 1 >= survey.rounds) return 0;
  if (isStatic(survey)) return 1;
  return Math.ceil(survey.rounds / survey.rotation) - Math.floor((last + 1) / survey.rotation);
}
