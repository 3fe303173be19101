/**
 * Uniform integers from random bytes, without a float and without bias.
 *
 * @module
 */

import { bits } from './exact.js';
import { must } from './msgpack.js';

export const WORD = 2n ** 32n;
/** Of the secret of an enrolment. */
export const SEED_BYTES = 32;

/**
 * Random bytes, each given once.
 *
 * @typedef {object} Bytes
 * @property {(n: number) => Uint8Array} take
 */

/** The operating system's generator, by the browser. @implements {Bytes} */
export class SystemBytes {
  /** @param {number} n */
  take(n) {
    const found = new Uint8Array(n);
    // A call gives 65,536 bytes at most.
    for (let at = 0; at < n; at += 65_536) crypto.getRandomValues(found.subarray(at, Math.min(at + 65_536, n)));
    return found;
  }
}

/** A stream that is read from its begin: for tests and checks, never for a device. @implements {Bytes} */
export class FixedBytes {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.used = 0;
  }

  /** @param {number} n */
  take(n) {
    must(n <= this.data.length - this.used, 'random bytes that end too early');
    this.used += n;
    return this.data.subarray(this.used - n, this.used);
  }
}

/** Return little-endian bytes as a whole number. @param {Uint8Array} bytes */
export function little(bytes) {
  let found = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) found = (found << 8n) | BigInt(bytes[i]);
  return found;
}

/**
 * Return a uniform integer below a total of at most 2^63.
 *
 * @param {Bytes} source
 * @param {bigint} total
 */
export function below(source, total) {
  const width = total <= WORD ? 4 : 8;
  const range = 1n << BigInt(8 * width);
  const limit = range - (range % total);
  for (;;) {
    const word = little(source.take(width));
    if (word < limit) return word % total;
  }
}

/**
 * Return true with probability part / whole, exactly.
 *
 * @param {Bytes} source
 * @param {bigint} part
 * @param {bigint} whole
 */
export function coin(source, part, whole) {
  const size = bits(whole);
  if (size <= 63) return below(source, whole) < part;
  const width = Math.ceil(size / 8);
  for (;;) {
    const draw = little(source.take(width)) >> BigInt(8 * width - size);
    if (draw < whole) return draw < part;
  }
}

/**
 * Return as many words of 32 bits as there are limits, all below theirs; an attempt that is not is dropped whole.
 *
 * @param {Bytes} source
 * @param {number[]} limits each at most 2^32
 */
export function attempt(source, limits) {
  for (;;) {
    const data = source.take(4 * limits.length);
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const words = limits.map((_, i) => view.getUint32(4 * i, true));
    if (words.every((word, i) => word < limits[i])) return words;
  }
}
