/**
 * Logarithms and places of floats by whole numbers of any size, with stated errors.
 *
 * @module
 */

import { Refused } from './msgpack.js';

/** Bits after the point of what follows; its errors stay below 2^-(POINT - SPARE). */
export const POINT = 256n;
const SPARE = 24n;
/** Units of the filter: 2^-UNITS nats. */
const UNITS = 40n;

/** @param {bigint} n n >= 0 */
export function bits(n) {
  return n === 0n ? 0 : n.toString(2).length;
}

/** @param {bigint} n */
export function longBits(n) {
  const digits = n.toString(16).length;
  return 4 * (digits - 1) + bits(n >> BigInt(4 * (digits - 1)));
}

/** 2 atanh(a / b) = ln((b + a) / (b - a)), for a / b of at most a third. @param {bigint} a @param {bigint} b */
function twiceAtanh(a, b) {
  let power = (a << POINT) / b;
  const square = (power * power) >> POINT;
  let sum = 0n;
  for (let odd = 1n; power > 0n; odd += 2n) {
    sum += power / odd;
    power = (power * square) >> POINT;
  }
  return 2n * sum;
}

const LN2 = twiceAtanh(1n, 3n);
/** Logarithms of whole numbers that were asked for: weights of a channel repeat. @type {Map<bigint, bigint>} */
const KNOWN = new Map();
const MOST_KNOWN = 4096;

/** @param {bigint} n n >= 1 */
function ln(n) {
  const known = KNOWN.get(n);
  if (known !== undefined) return known;
  const power = BigInt(longBits(n) - 1);
  const unit = 1n << power;
  const found = LN2 * power + twiceAtanh(n - unit, n + unit);
  if (KNOWN.size >= MOST_KNOWN) KNOWN.clear();
  KNOWN.set(n, found);
  return found;
}

/**
 * Return ln(n / d), n >= d >= 1, between two numbers of POINT bits after the point.
 *
 * @param {bigint} n
 * @param {bigint} d
 * @returns {[bigint, bigint]}
 */
function lnBetween(n, d) {
  const difference = ln(n) - ln(d);
  const error = 1n << SPARE;
  return [difference > error ? difference - error : 0n, difference + error];
}

/** @param {bigint} low @param {bigint} high */
export function same(low, high) {
  if (low !== high) throw new Refused('a logarithm too near to a whole number of units');
  return low;
}

/**
 * Return the least whole number of 2^-40 nats that is not below ln(n / d), n >= d.
 *
 * @param {bigint} n
 * @param {bigint} d
 * @returns {number} below 2^53, as ln of 128 bits is
 */
export function unitsUp(n, d) {
  if (n === d) return 0;
  const [low, high] = lnBetween(n, d);
  return Number(same(low >> (POINT - UNITS), high >> (POINT - UNITS))) + 1;
}

/** Return the whole 2^-40 nats of ln w. @param {bigint} w w >= 1; @returns {number} */
export function unitsDown(w) {
  if (w === 1n) return 0;
  const [low, high] = lnBetween(w, 1n);
  return Number(same(low >> (POINT - UNITS), high >> (POINT - UNITS)));
}

/** Return the least float that is not below ln(n / d), n >= d. @param {bigint} n @param {bigint} d */
export function lnAbove(n, d) {
  if (n === d) return 0;
  const [low, high] = lnBetween(n, d);
  const shift = Math.max(longBits(high) - 53, 0);
  const floor = same(low >> BigInt(shift), high >> BigInt(shift)) + 1n;
  return Number(floor) * 2 ** (shift - Number(POINT));
}

const FLOAT = new DataView(new ArrayBuffer(8));

/**
 * Return a finite float as a signed whole number times a power of two.
 *
 * @param {number} x
 * @returns {[bigint, number]} mantissa and exponent
 */
export function parts(x) {
  FLOAT.setFloat64(0, Math.abs(x));
  const word = FLOAT.getBigUint64(0);
  const exponent = Number(word >> 52n);
  const fraction = word & ((1n << 52n) - 1n);
  const mantissa = exponent === 0 ? fraction : fraction | (1n << 52n);
  return [x < 0 ? -mantissa : mantissa, exponent === 0 ? -1074 : exponent - 1075];
}

/** @param {bigint} a @param {bigint} b */
export function gcd(a, b) {
  while (b > 0n) [a, b] = [b, a % b];
  return a;
}

/**
 * Return the place of x on the grid of `points` from low to high: the point below, and the rest as a fraction.
 *
 * @param {[bigint, number]} x mantissa and exponent, low <= x <= high
 * @param {number} low
 * @param {number} high
 * @param {number} points
 * @returns {[number, bigint, bigint]}
 */
export function place(x, low, high, points) {
  const numbers = [x, parts(low), parts(high)];
  const least = Math.min(...numbers.map(([, exponent]) => exponent));
  const [value, from, to] = numbers.map(([n, exponent]) => n << BigInt(exponent - least));
  const above = (value - from) * BigInt(points - 1);
  const width = to - from;
  const rest = above % width;
  const common = gcd(rest, width);
  return [Number(above / width), rest / common, width / common];
}
