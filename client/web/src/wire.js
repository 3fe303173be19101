/**
 * Reports, uploads and their outcomes.
 *
 * @module
 */

import { array, arrayOf, integer, must, read, text, write } from './msgpack.js';

export const MAX_ROUND = 2 ** 31 - 1;
const MAX_OUTCOMES = 2 ** 16;
export const OUTCOMES = ['accepted', 'invalid', 'early', 'late', 'unknown', 'over_quota'];

/**
 * @typedef {object} Report
 * @property {Uint8Array} identity the survey's digest, 16 bytes, then the report's id, 16 bytes
 * @property {number} round counted from 0
 * @property {number | Uint8Array} symbol
 */

/** Return a report's bytes. @param {Report} report */
export function writeReport({ identity, round, symbol }) {
  must(identity.length === 32, 'an identity of 32 bytes');
  must(Number.isInteger(round) && round >= 0 && round <= MAX_ROUND, 'a round of 0 to 2^31 - 1');
  return write([identity, BigInt(round), typeof symbol === 'number' ? BigInt(symbol) : symbol]);
}

/** Return the upload of reports that were written before, byte for byte. @param {Uint8Array[]} reports */
export function writeUpload(reports) {
  must(reports.length < 2 ** 16, 'too many reports');
  const head = reports.length < 16 ? [0x90 | reports.length] : [0xdc, reports.length >> 8, reports.length & 0xff];
  const body = new Uint8Array(reports.reduce((n, each) => n + each.length, 2 + head.length));
  body.set([0x92, 0x01, ...head]);
  let at = 2 + head.length;
  for (const each of reports) {
    body.set(each, at);
    at += each.length;
  }
  return body;
}

/** Return the outcomes of an upload, in its order. @param {Uint8Array} data */
export function readOutcomes(data) {
  const [version, listed] = arrayOf(read(data), 2);
  integer(version, 1n, 1n);
  const found = array(listed).map(text);
  must(found.length <= MAX_OUTCOMES, 'too many outcomes');
  must(found.every((word) => OUTCOMES.includes(word)), 'an unknown outcome');
  return found;
}
