/**
 * Scores: one number from several attributes.
 *
 * @module
 */

import { Grr } from '../channels/tables.js';
import { parts } from '../exact.js';
import { exactSum, expBelow, expOfMinus } from '../exponentials.js';
import { Refused, arrayOf, float, must, text } from '../msgpack.js';
import { rounded } from './readings.js';

const MAX_TERM = 1e150;
const SCORE_TOTAL = 2n ** 62n;

/** @typedef {import('../survey.js').Asked} Asked */
/** @typedef {import('../msgpack.js').Value} Value */
/** @typedef {import('../random.js').Bytes} Bytes */

/** A score: the probability of "yes" is a place between two ends. */
export class Score {
  /** @param {Asked} survey @param {Value[]} form */
  constructor({ attributes, channel, epsilon }, form) {
    this.attributes = attributes;
    must(form.length === 5 && attributes.length >= 1 && attributes.length <= 64, 'one to 64 attributes');
    must(attributes.every((each, i) => i === 0 || attributes[i - 1].id < each.id), 'attributes in order');
    this.kind = text(form[1]);
    must(['linear', 'truncated', 'logistic'].includes(this.kind), 'an unknown score');
    const pairs = arrayOf(form[2], attributes.length).map((pair) => arrayOf(pair, 2).map(float));
    this.coefficients = pairs.map(([coefficient]) => coefficient);
    this.defaults = pairs.map(([, other]) => other);
    this.intercept = float(form[3]);
    const [low, high] = arrayOf(form[4], 2).map(float);
    this.low = low;
    this.high = high;
    const logistic = this.kind === 'logistic';
    must(low < high && (!logistic || (low === 0 && high === 1)), 'ends of a score');
    const domains = attributes.map((attribute) => attribute.ends());
    must(this.defaults.every((d, i) => domains[i][0] <= d && d <= domains[i][1]), 'a default out of its domain');
    const sizes = this.coefficients.map((a, i) => Math.abs(a) * Math.max(...domains[i].map(Math.abs)));
    const largest = Math.max(...sizes, Math.abs(this.intercept), Math.abs(low), Math.abs(high));
    must(largest <= MAX_TERM, 'terms too large');
    const error = (sizes.length + 8) * 2 ** -52 * (Math.abs(this.intercept) + exactSum(sizes));
    if (this.kind === 'linear') {
      /** @param {(a: number, b: number) => number} end */
      const along = (end) =>
        exactSum([this.intercept, ...this.coefficients.map((a, i) => end(a * domains[i][0], a * domains[i][1]))]);
      const spare = error + 1e-12 * (high - low);
      must(along(Math.min) >= low - spare && along(Math.max) <= high + spare, 'a score beyond its ends');
    }
    const above = expBelow(epsilon - 2 ** -36) + (1n << 96n);
    const least = ((SCORE_TOTAL << 96n) + above - 1n) / above;
    const steep = logistic ? 0.25 : 1 / (high - low);
    let shift = steep * error + 2 ** -49;
    if (!logistic) shift += 2 ** -50 * steep * Math.max(Math.abs(low), Math.abs(high));
    const slack = (2 * shift * Number(SCORE_TOTAL - 2n * least)) / Number(least);
    must(slack <= 1e-6, 'coefficients too large');
    const own = channel instanceof Grr && channel.u === least && channel.t === SCORE_TOTAL - least;
    must(own && channel.inputs === 2, "another channel than the score's");
  }

  /** Return the place between the ends, 0 to 1. @param {number[]} numbers */
  place(numbers) {
    const sum = exactSum([this.intercept, ...this.coefficients.map((a, i) => a * numbers[i])]);
    if (this.kind === 'logistic') {
      const small = expOfMinus(Math.abs(sum));
      return sum >= 0 ? 1 / (1 + small) : small / (1 + small);
    }
    return Math.min(Math.max((sum - this.low) / (this.high - this.low), 0), 1);
  }

  /** @param {Value[]} values @param {Bytes} source */
  input(values, source) {
    const numbers = this.attributes.map((attribute, i) => attribute.number(values[i])?.[1] ?? this.defaults[i]);
    return rounded(parts(this.place(numbers)), 0, 1, 2, source);
  }

  /** @returns {{inputs: number[], shape: number[]}} */
  cells() {
    throw new Refused('a score, whose bounds are of floats');
  }
}
