/**
 * A round of the demo: devices that answer, counts of their reports, estimates, a seal, and what checks it.
 *
 * @module
 */

import { Filter } from '../filter.js';
import { equal } from '../msgpack.js';
import { SystemBytes } from '../random.js';
import { Survey } from '../survey.js';
import { readReport } from '../reports.js';
import { writeReport } from '../wire.js';

/** @typedef {{shares: number[], errors: number[]}} Estimates of every input, missing last; errors are standard ones */

const SOURCE = new SystemBytes();

/** Return the report of a new device that holds a value, once its filter has let it answer. @param {Survey} survey @param {string | null} value */
export function answered(survey, value) {
  const filter = new Filter(survey.epsilon);
  if (!filter.reserve([{ keys: [0], survey }])) throw new Error('the budget must bear one answer');
  const symbol = survey.channel.draw(survey.input([value], SOURCE), SOURCE);
  filter.record(0, symbol);
  return writeReport({ identity: new Uint8Array([...survey.digest, ...SOURCE.take(16)]), round: 0, symbol });
}

/** Return how many reports say each symbol. @param {Survey} survey @param {Uint8Array[]} reports */
export function counted(survey, reports) {
  const counts = new Array(survey.channel.inputs).fill(0);
  const seen = new Set();
  for (const bytes of reports) {
    const { identity, symbol } = readReport(bytes);
    const id = identity.subarray(16).join();
    if (!equal(identity.subarray(0, 16), survey.digest) || seen.has(id)) throw new Error('a report of another survey, or twice');
    seen.add(id);
    counts[/** @type {number} */ (symbol)] += 1;
  }
  return counts;
}

/** Return the probability of every symbol (rows) from every input. @param {Survey} survey */
function law(survey) {
  const weights = Array.from({ length: survey.channel.inputs }, (_, y) => survey.channel.column(y).map(Number));
  const total = weights.reduce((sum, row) => sum + row[0], 0);
  return weights.map((row) => row.map((weight) => weight / total));
}

/** Return the inverse of a matrix by elimination. @param {number[][]} matrix */
function inverse(matrix) {
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  rows.forEach((row, i) => {
    const pivot = row[i];
    row.forEach((each, j) => (row[j] = each / pivot));
    rows.forEach((other, k) => {
      const factor = other[i];
      if (k !== i) other.forEach((each, j) => (other[j] = each - factor * row[j]));
    });
  });
  return rows.map((row) => row.slice(matrix.length));
}

/**
 * Return unbiased shares and their standard errors, from the very weights that the symbols were drawn by.
 *
 * @param {Survey} survey
 * @param {number[]} counts
 * @returns {Estimates}
 */
export function estimated(survey, counts) {
  const n = counts.reduce((a, b) => a + b, 0);
  const scores = inverse(law(survey));
  const sums = scores.map((row) => row.reduce((sum, score, y) => sum + score * counts[y], 0));
  // Of devices that are given, only the draws vary: the mean of a device's score is 1 where it holds the value, else 0.
  const noise = scores.map((row, x) => row.reduce((sum, score, y) => sum + score ** 2 * counts[y], 0) - sums[x]);
  return { shares: sums.map((sum) => sum / n), errors: noise.map((each) => Math.sqrt(Math.max(each, 0)) / n) };
}

/** Return the seal of a round: SHA-256 of what it asked, its counts and its estimates. @param {Survey} survey @param {number[]} counts @param {Estimates} estimates */
export async function sealOf(survey, counts, estimates) {
  const text = JSON.stringify([Array.from(survey.digest), counts, estimates.shares, estimates.errors]);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Return what a check of a sealed round finds: from its bytes alone, and by another way than its estimates were made.
 *
 * @param {Uint8Array} canonical
 * @param {Uint8Array[]} reports
 * @param {number[]} counts
 * @param {Estimates} estimates
 * @param {string} seal
 * @returns {Promise<{says: string, holds: boolean}[]>}
 */
export async function checks(canonical, reports, counts, estimates, seal) {
  const survey = await Survey.read(canonical);
  const again = counted(survey, reports);
  const n = reports.length;
  // Forward, not backward: what the shares would send must be what came.
  const sent = law(survey).map((row) => row.reduce((sum, p, x) => sum + p * estimates.shares[x], 0));
  const far = Math.max(...sent.map((share, y) => Math.abs(share - again[y] / n)));
  return [
    { says: `Epsilon, certified anew from the survey's integers, is ${survey.certified.toFixed(9)}: at most ${survey.epsilon}.`, holds: survey.certified <= survey.epsilon },
    { says: `The ${n.toLocaleString('en')} reports, read again from their bytes, have the sealed counts.`, holds: again.join() === counts.join() },
    { says: 'The shares, sent through the channel, give those counts back.', holds: far < 1e-12 },
    { says: 'The shares of all answers sum to 1.', holds: Math.abs(estimates.shares.reduce((a, b) => a + b, 0) - 1) < 1e-12 },
    { says: `The seal ${seal.slice(0, 16)}… is the SHA-256 of what is shown.`, holds: seal === (await sealOf(survey, again, estimates)) },
  ];
}
