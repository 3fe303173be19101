/**
 * What to upload now, and what an answer means, as values: nothing here reads a clock or waits.
 *
 * @module
 */

import { Refused } from '../msgpack.js';
import { readOutcomes, writeUpload } from '../wire.js';

/** Reports and bytes of one upload; seconds between two, of the back-off, of the longest Retry-After, of one call. */
export const LIMITS = { reports: 8, bytes: 4096, gap_s: 1, base_s: 1, cap_s: 3600, retryAfter_s: 86_400, upload_s: 15 };
const STEPS = 32;

/** @typedef {typeof LIMITS} Limits */
/** @typedef {{failures: number, notBefore_s: number, single: boolean}} Backoff */
/** @typedef {[string | number, {name: string, report: Uint8Array}]} Row */

/**
 * Return the reports to send in one body, or how long to wait.
 *
 * @param {Row[]} waiting oldest first
 * @param {Backoff | null} backoff
 * @param {number} now_s
 * @param {Limits} limits
 */
export function choose(waiting, backoff, now_s, limits) {
  const delay_s = (backoff?.notBefore_s ?? 0) - now_s;
  // No delay that is ever set is longer: a larger one means that the clock was set back.
  const wait_s = delay_s > 0 && delay_s <= limits.retryAfter_s + limits.cap_s + limits.gap_s ? delay_s : 0;
  const rows = [];
  let size = 0;
  for (const row of waiting.slice(0, backoff?.single ? 1 : limits.reports)) {
    size += row[1].report.length;
    if (rows.length > 0 && size > limits.bytes) break;
    rows.push(row);
  }
  return { wait_s, rows, body: writeUpload(rows.map(([, { report }]) => report)) };
}

/** Return the seconds that a Retry-After asks for. @param {string | null} header @param {number} now_s */
function retryAfter(header, now_s) {
  if (header === null) return 0;
  if (/^\d+$/.test(header.trim())) return Number(header.trim().slice(0, 12));
  const at_s = Date.parse(header) / 1000;
  return Number.isNaN(at_s) ? 0 : Math.max(0, at_s - now_s);
}

/**
 * Return the outcomes of an upload, null where its reports are to be sent again, and the back-off from here on.
 *
 * @param {number} many reports that were sent
 * @param {import('./transport.js').Response | null} answer null where none came
 * @param {Backoff | null} backoff
 * @param {number} now_s
 * @param {Limits} limits
 * @returns {{outcomes: string[] | null, failure: string | null, backoff: Backoff}}
 */
export function afterwards(many, answer, backoff, now_s, limits) {
  /** @param {string} failure @param {string[] | null} outcomes @param {number} least_s @param {boolean} alone */
  const slower = (failure, outcomes = null, least_s = 0, alone = false) => {
    const failures = (backoff?.failures ?? 0) + 1;
    // On top of Retry-After: devices that were turned away together must not return together.
    const jitter_s = Math.random() * Math.min(limits.cap_s, limits.base_s * 2 ** Math.min(failures, STEPS));
    const notBefore_s = now_s + Math.min(least_s, limits.retryAfter_s) + jitter_s;
    return { outcomes, failure, backoff: { failures, notBefore_s, single: alone || (backoff?.single ?? false) } };
  };
  if (answer === null) return slower('unreachable');
  if (answer.status !== 200) {
    // 400 and 413 condemn the body as a whole: one report at a time finds out which.
    const alone = answer.status === 400 || answer.status === 413;
    return slower(`status ${answer.status}`, null, retryAfter(answer.retryAfter, now_s), alone);
  }
  let outcomes;
  try {
    outcomes = readOutcomes(answer.body);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return slower('unreadable answer');
  }
  if (outcomes.length !== many) return slower('unreadable answer');
  if (outcomes.every((outcome) => outcome === 'early')) return slower('early', outcomes);
  return { outcomes, failure: null, backoff: { failures: 0, notBefore_s: now_s + limits.gap_s, single: false } };
}
