/**
 * What a device draws from its own secret: its round of each cycle of a rotating survey, and its part of a bundle.
 *
 * WebCrypto has no BLAKE2b; this is RFC 7693's, for one block of a key and one of data.
 *
 * @module
 */

import { must } from './msgpack.js';
import { SEED_BYTES } from './random.js';

const BLOCK_BYTES = 128;
/** "part" in ASCII. */
const PART = 0x70617274;
const MASK = 2n ** 64n - 1n;
/** The first 64 bits of the fractional parts of the square roots of the first eight primes, as in SHA-512. */
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
/** Which word of the block a step of a round reads; rounds 10 and 11 are those of 0 and 1. */
const ORDER = [
  '0123456789abcdef', 'ea489fd61c02b753', 'b8c052fdae367194', '7931dcbe265a40f8', '905724afe1bc683d',
  '2c6a0b834d75fe19', 'c51fed4a0763928b', 'db7ec13950f4862a', '6fe9b308c2d714a5', 'a2847615fb9e3cd0',
].map((digits) => Array.from(digits, (digit) => parseInt(digit, 16)));
/** The four columns of the state, then its four diagonals. */
const QUARTERS = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];

/** @param {bigint} word @param {bigint} bits */
function turned(word, bits) {
  return ((word >> bits) | (word << (64n - bits))) & MASK;
}

/**
 * Return the state after one block.
 *
 * @param {bigint[]} state
 * @param {Uint8Array} block
 * @param {number} bytes how many bytes came so far, this block's among them
 * @param {boolean} last
 */
function compressed(state, block, bytes, last) {
  const view = new DataView(block.buffer);
  const words = Array.from({ length: 16 }, (_, i) => view.getBigUint64(8 * i, true));
  const v = [...state, ...IV];
  v[12] ^= BigInt(bytes);
  if (last) v[14] ^= MASK;
  for (let round = 0; round < 12; round++) {
    const order = ORDER[round % 10];
    QUARTERS.forEach(([a, b, c, d], i) => {
      for (const [word, first, second] of /** @type {const} */ ([[0, 32n, 24n], [1, 16n, 63n]])) {
        v[a] = (v[a] + v[b] + words[order[2 * i + word]]) & MASK;
        v[d] = turned(v[d] ^ v[a], first);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = turned(v[b] ^ v[c], second);
      }
    });
  }
  return state.map((word, i) => word ^ v[i] ^ v[i + 8]);
}

/**
 * Return BLAKE2b of 4 or 8 bytes over words of 32 bits, big-endian, with the seed as its key, as such a word.
 *
 * @param {Uint8Array} seed
 * @param {number[]} words
 * @param {number} bytes
 */
function drawn(seed, words, bytes) {
  must(seed.length === SEED_BYTES, 'a seed of 32 bytes');
  const key = new Uint8Array(BLOCK_BYTES);
  key.set(seed);
  const data = new DataView(new ArrayBuffer(BLOCK_BYTES));
  words.forEach((word, i) => data.setUint32(4 * i, word));
  const begin = IV.map((word, i) => (i === 0 ? word ^ BigInt(0x01010000 | (SEED_BYTES << 8) | bytes) : word));
  const block = new Uint8Array(data.buffer);
  const [word] = compressed(compressed(begin, key, BLOCK_BYTES, false), block, BLOCK_BYTES + 4 * words.length, true);
  const found = new DataView(new ArrayBuffer(8));
  found.setBigUint64(0, word, true);
  return found.getBigUint64(0) >> BigInt(64 - 8 * bytes);
}

/** Return what the public coin shows that picks a bundle's part. @param {Uint8Array} seed @param {number} place */
export function coinToss(seed, place) {
  return Number(drawn(seed, [PART, 0, place], 4));
}

/**
 * Return the round within a cycle that a device answers, from 0 to rotation - 1.
 *
 * @param {Uint8Array} seed the secret of the device's enrolment
 * @param {number} cycle
 * @param {number} rotation rounds of a cycle
 */
export function slotInCycle(seed, cycle, rotation) {
  const all = BigInt(rotation);
  const end = (2n ** 64n / all) * all;
  let word = end;
  for (let place = 0; word >= end; place++) word = drawn(seed, [cycle, place], 8);
  return Number(word % all);
}
