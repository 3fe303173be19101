/**
 * Reports that came, read from their bytes: what a server does, and a page that plays one.
 *
 * @module
 */

import { MAX_DEPTH, Reader, Refused, arrayOf, binary, integer, must, read, whole } from './msgpack.js';
import { MAX_ROUND } from './wire.js';

/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./wire.js').Report} Report */

const MAX_SYMBOL = 2 ** 32 - 1;
const MAX_SYMBOL_BYTES = 2 ** 15;
const MAX_REPORTS = 1724;

class Skipper extends Reader {
  /** Pass over one well-formed value, an extension too. @param {number} depth */
  skip(depth) {
    must(depth <= MAX_DEPTH, 'nested too deep');
    const head = this.count(1);
    let bytes = 0;
    let items = 0;
    if (head >= 0x80 && head <= 0x8f) items = 2 * (head & 15);
    else if (head >= 0x90 && head <= 0x9f) items = head & 15;
    else if (head >= 0xa0 && head <= 0xbf) bytes = head & 31;
    else if (head === 0xc1) throw new Refused('an unused byte');
    else if (head >= 0xc4 && head <= 0xc6) bytes = this.count(1 << (head - 0xc4));
    else if (head >= 0xc7 && head <= 0xc9) bytes = 1 + this.count(1 << (head - 0xc7));
    else if (head >= 0xca && head <= 0xcb) bytes = 4 << (head - 0xca);
    else if (head >= 0xcc && head <= 0xcf) bytes = 1 << (head - 0xcc);
    else if (head >= 0xd0 && head <= 0xd3) bytes = 1 << (head - 0xd0);
    else if (head >= 0xd4 && head <= 0xd8) bytes = 1 + (1 << (head - 0xd4));
    else if (head >= 0xd9 && head <= 0xdb) bytes = this.count(1 << (head - 0xd9));
    else if (head >= 0xdc && head <= 0xdd) items = this.count(2 << (head - 0xdc));
    else if (head >= 0xde && head <= 0xdf) items = 2 * this.count(2 << (head - 0xde));
    this.take(bytes);
    for (let i = 0; i < items; i++) this.skip(depth + 1);
  }
}

/**
 * Return the bytes of each element of an array that is all of the data; the elements are not looked into.
 *
 * @param {Uint8Array} data
 * @param {number} most how many there may be
 * @returns {Uint8Array[]}
 */
function elements(data, most) {
  const reader = new Skipper(data);
  const head = reader.count(1);
  let n = head & 15;
  if (head === 0xdc || head === 0xdd) n = reader.count(2 << (head - 0xdc));
  else must(head >= 0x90 && head <= 0x9f, 'no array');
  must(n <= most, 'too many elements');
  const found = [];
  for (let i = 0; i < n; i++) {
    const from = reader.at;
    reader.skip(0);
    found.push(data.slice(from, reader.at));
  }
  must(reader.at === data.length, 'bytes after the end');
  return found;
}

/** Return a number or a set, as reports hold it. @param {Value} value */
export function readSymbol(value) {
  if (!(value instanceof Uint8Array)) return whole(value, 0, MAX_SYMBOL);
  must(value.length >= 1 && value.length <= MAX_SYMBOL_BYTES, 'a set of 1 to 2^15 bytes');
  return value;
}

/** Return a report. @param {Uint8Array} data @returns {Report} */
export function readReport(data) {
  const [identity, round, symbol] = arrayOf(read(data), 3);
  must(binary(identity).length === 32, 'an identity of 32 bytes');
  return { identity: binary(identity), round: whole(round, 0, MAX_ROUND), symbol: readSymbol(symbol) };
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
