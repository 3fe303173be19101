/**
 * Reports, uploads and their outcomes.
 *
 * @module
 */

import { array, arrayOf, binary, elements, integer, must, read, text, whole, write } from './msgpack.js';

/** @typedef {import('./msgpack.js').Value} Value */

const MAX_ROUND = 2 ** 31 - 1;
const MAX_SYMBOL = 2 ** 32 - 1;
const MAX_SYMBOL_BYTES = 2 ** 15;
const MAX_REPORTS = 1724;
const MAX_OUTCOMES = 2 ** 16;
export const OUTCOMES = ['accepted', 'invalid', 'early', 'late', 'unknown', 'over_quota'];

/**
 * @typedef {object} Report
 * @property {Uint8Array} identity the survey's digest, 16 bytes, then the report's id, 16 bytes
 * @property {number} round counted from 0
 * @property {number | Uint8Array} symbol
 */

/** Return a number or a set, as reports hold it. @param {Value} value */
export function readSymbol(value) {
  if (!(value instanceof Uint8Array)) return whole(value, 0, MAX_SYMBOL);
  must(value.length >= 1 && value.length <= MAX_SYMBOL_BYTES, 'a set of 1 to 2^15 bytes');
  return value;
}

/** Return a report's bytes. @param {Report} report */
export function writeReport({ identity, round, symbol }) {
  must(identity.length === 32, 'an identity of 32 bytes');
  must(Number.isInteger(round) && round >= 0 && round <= MAX_ROUND, 'a round of 0 to 2^31 - 1');
  return write([identity, BigInt(round), typeof symbol === 'number' ? BigInt(symbol) : symbol]);
}

/** Return a report. @param {Uint8Array} data @returns {Report} */
export function readReport(data) {
  const [identity, round, symbol] = arrayOf(read(data), 3);
  must(binary(identity).length === 32, 'an identity of 32 bytes');
  return { identity: binary(identity), round: whole(round, 0, MAX_ROUND), symbol: readSymbol(symbol) };
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

/** Return every report of an upload, null for an element that is none. @param {Uint8Array} data @returns {(Report | null)[]} */
export function readUpload(data) {
  const frame = elements(data, 2);
  must(frame.length === 2, 'an array of two');
  integer(read(frame[0]), 1n, 1n);
  return elements(frame[1], MAX_REPORTS).map((each) => {
    try {
      return readReport(each);
    } catch {
      return null;
    }
  });
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
