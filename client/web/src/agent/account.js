/**
 * What the transcript adds up to: the filter, the answers that it remembers, what waits.
 *
 * A step is a row of the transcript. A reservation is one decision about all the slots of a survey.
 *
 * @module
 */

import { Filter, UNIT } from '../filter.js';
import { must } from '../msgpack.js';
import { MEMOISED, MERGED, isStatic } from './schedule.js';

/** @typedef {import('../survey.js').Survey} Survey */
/** @typedef {{kind: 'reserve', digest: string, slots: number[], pins: number[]}} Reserved pins: the version of each attribute's pinned value */
/** @typedef {{kind: 'record', digest: string, slot: number, symbol: number | Uint8Array}} Recorded */
/** @typedef {{kind: 'cancel', digest: string}} Cancelled */
/** @typedef {Reserved | Recorded | Cancelled} Step */

/** Comparisons of two cells that one decision may take: a second or two. */
const MAX_WORK = 2 ** 28;

/**
 * A survey as the filter reads it, where its answers share no coordinate with others: an input by itself. Of a score these
 * are its two ends, as far apart as any two records; of hashes two readings stand for all.
 *
 * @param {Survey} survey
 */
function byInputs(survey) {
  if (survey.asks === 'set') return survey; // two readings stand for all sets
  const channel = survey.channel.alone?.() ?? survey.channel;
  const inputs = Array.from({ length: channel.inputs }, (_, x) => x);
  return /** @type {Survey} */ (/** @type {unknown} */ ({
    channel,
    form: { cells: () => ({ inputs, shape: [inputs.length] }) },
  }));
}

export class Account {
  /** Slots that are reserved: ticket, coordinates, and versions of pinned values. @type {Map<string, {ticket: number, keys: number[], pins: number[]}>} */
  open = new Map();
  /** What every answered slot said. @type {Map<string, number | Uint8Array>} */
  recorded = new Map();
  /** Versions of the pinned values that a slot was reserved for, answered or not. @type {Map<string, number[]>} */
  served = new Map();
  /** @type {Map<string, number>} */
  coordinates = new Map();
  /** @type {Map<Survey, Survey>} */
  apart = new Map();
  slots = 0;

  /**
   * @param {number} budget nats
   * @param {{loss: number, committed: number}} closed units, of what was forgotten
   */
  constructor(budget, closed) {
    const left = new Filter(budget).limit - closed.committed;
    // Every query costs more than a unit: one unit is nothing.
    this.filter = new Filter(Math.max(left, 1) * UNIT);
    this.closed = closed;
  }

  /** Units lost by what was answered. */
  get loss() {
    return this.closed.loss + this.filter.loss;
  }

  /** Units lost, with all that is reserved at its worst. */
  get committed() {
    return this.closed.committed + this.filter.committed;
  }

  /** @param {string} name */
  #coordinate(name) {
    const found = this.coordinates.get(name) ?? this.coordinates.size;
    this.coordinates.set(name, found);
    return found;
  }

  /**
   * Return what a slot asks of the filter.
   *
   * Answers merge on one pinned value of a static attribute alone. Each round of what evolves is a coordinate of its
   * own, and so is a rounded number, a score, a set or a text of a dictionary for every survey: their losses add.
   *
   * @param {Survey} survey
   * @param {string} digest
   * @param {number} slot
   * @param {number[]} pins
   */
  query(survey, digest, slot, pins) {
    const apart = survey.attributes.some(({ domain }) => ['number', 'dictionary'].includes(domain.type));
    if (slot === MEMOISED && MERGED.includes(survey.asks) && !apart) {
      const keys = survey.attributes.map(({ id }, i) => this.#coordinate(`pinned ${id} ${pins[i]}`));
      return { keys, survey };
    }
    const like = this.apart.get(survey) ?? byInputs(survey);
    this.apart.set(survey, like);
    return { keys: [this.#coordinate(`${slot} ${digest} ${pins}`)], survey: like };
  }

  /**
   * Return whether the filter can be asked in time, and has room for so many answers by themselves.
   *
   * @param {Survey} survey
   * @param {string} digest
   * @param {number} count
   * @param {number[]} pins
   * @returns {'too_large' | 'over_budget' | null}
   */
  unfit(survey, digest, count, pins) {
    const slot = isStatic(survey) ? MEMOISED : 0;
    const one = this.query(survey, digest, slot, pins);
    const joined = this.filter.components.filter(({ keys }) => keys.some((key) => one.keys.includes(key)));
    const sizes = new Map(joined.flatMap(({ keys, shape }) => keys.map((key, i) => [key, shape[i]])));
    one.survey.form.cells().shape.forEach((size, i) => sizes.set(one.keys[i], size));
    const cells = [...sizes.values()].reduce((a, b) => a * b, 1);
    const others = this.filter.components.reduce((n, { upper }) => n + upper.length ** 2, 0);
    if (count * cells ** 2 + others > MAX_WORK) return 'too_large';
    if (slot === MEMOISED) return null;
    const alone = new Filter(1000);
    alone.reserve([one]);
    return count * alone.committed <= this.filter.limit - this.filter.committed ? null : 'over_budget';
  }

  /**
   * Take a step; false, and nothing, for a reservation that does not fit.
   *
   * @param {Step} step
   * @param {Survey} survey
   * @throws {import('../msgpack.js').Refused} It does not follow from the steps before it.
   */
  take(step, survey) {
    const { digest } = step;
    if (step.kind === 'reserve') {
      const queries = step.slots.map((slot) => this.query(survey, digest, slot, step.pins));
      const first = this.filter.tickets;
      if (!this.filter.reserve(queries)) return false;
      step.slots.forEach((slot, i) => {
        const name = `${digest} ${slot}`;
        this.open.set(name, { ticket: first + i, keys: queries[i].keys, pins: step.pins });
        this.served.set(name, step.pins);
      });
      this.slots += step.slots.length;
      return true;
    }
    if (step.kind === 'record') {
      const name = `${digest} ${step.slot}`;
      const waiting = this.open.get(name);
      must(waiting !== undefined, 'an answer without a reservation');
      this.filter.record(waiting.ticket, step.symbol);
      // No other answer reads the value of one round.
      if (step.slot !== MEMOISED) waiting.keys.forEach((key) => this.filter.close(key));
      this.open.delete(name);
      this.recorded.set(name, step.symbol);
      return true;
    }
    for (const [name, { ticket }] of [...this.open]) {
      if (!name.startsWith(`${digest} `)) continue;
      this.filter.cancel(ticket);
      this.open.delete(name);
      this.served.delete(name);
    }
    return true;
  }
}
