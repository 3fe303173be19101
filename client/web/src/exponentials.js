/**
 * Exponentials and sums of floats by whole numbers of any size, for scores.
 *
 * @module
 */

import { POINT, longBits, parts, same } from './exact.js';

/** Return n / 2^by, by of either sign, rounded down. @param {bigint} n @param {number} by */
function shifted(n, by) {
  return by >= 0 ? n << BigInt(by) : n >> BigInt(-by);
}

/** e^x with POINT bits after the point, x in 0 to 40, and less than 2^70 too low. @param {number} x */
function exponential(x) {
  const [mantissa, exponent] = parts(x);
  const fixed = shifted(mantissa, Number(POINT) + exponent);
  let sum = 0n;
  let term = 1n << POINT;
  for (let n = 1n; term > 0n; n++) {
    sum += term;
    term = ((term * fixed) >> POINT) / n;
  }
  return sum;
}

/** Return floor(2^96 e^x) for x in 0 to 40. @param {number} x */
export function expBelow(x) {
  // Each of some 400 terms is cut by less than 40^40 / 40! < 2^57 last places.
  const sum = exponential(x);
  return same(sum >> (POINT - 96n), (sum + (1n << 70n)) >> (POINT - 96n));
}

/**
 * Return e^-x for x >= 0, rounded to the nearest float: the same on every engine, as Math.exp is not.
 *
 * @param {number} x
 */
export function expOfMinus(x) {
  if (x > 750) return 0;
  // e^-x = e^-(x / 32) to the power of 32: the argument stays in the range of the series.
  const whole = exponential(x / 32);
  let inverse = (1n << (2n * POINT)) / whole;
  for (let i = 0; i < 5; i++) inverse = (inverse * inverse) >> POINT;
  // Where few bits are left, more of them: 2^-1082 and below is 0 as a float.
  if (inverse >> 128n === 0n) return expOfLarge(x);
  return rounded(inverse, -Number(POINT));
}

/** @param {number} x */
function expOfLarge(x) {
  const point = 1400n;
  const [mantissa, exponent] = parts(x);
  const fixed = shifted(mantissa, Number(point) + exponent);
  let sum = 0n;
  let term = 1n << point;
  for (let n = 1n; term > 0n; n++) {
    sum += term;
    term = ((term * fixed) >> point) / n;
  }
  return rounded((1n << (2n * point)) / sum, -Number(point));
}

/**
 * Return a signed whole number times a power of two as a float: to the nearest, ties to even.
 *
 * @param {bigint} n
 * @param {number} exponent
 */
function rounded(n, exponent) {
  const size = n < 0n ? -n : n;
  // Below the normal floats the last place is 2^-1074.
  const shift = Math.max(longBits(size) - 53, -1074 - exponent, 0);
  let kept = size >> BigInt(shift);
  if (shift > 0) {
    const rest = size - (kept << BigInt(shift));
    const half = 1n << BigInt(shift - 1);
    if (rest > half || (rest === half && (kept & 1n) === 1n)) kept += 1n;
  }
  // Two steps, so that neither power of two leaves the floats.
  const by = exponent + shift;
  const first = Math.trunc(by / 2);
  const found = Number(kept) * 2 ** first * 2 ** (by - first);
  return n < 0n ? -found : found;
}

/** Return the sum of finite floats, rounded once. @param {number[]} numbers */
export function exactSum(numbers) {
  let sum = 0n;
  for (const x of numbers) {
    const [mantissa, exponent] = parts(x);
    sum += mantissa << BigInt(exponent + 1074);
  }
  return rounded(sum, -1074);
}
