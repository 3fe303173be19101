/**
 * Lists of surveys, plain and signed.
 *
 * @module
 */

import { array, arrayOf, binary, equal, integer, must, read, text, whole, write } from './msgpack.js';
import { MAX_BYTES, digestOf } from './survey.js';

/** @typedef {import('./msgpack.js').Value} Value */

const MAX_SURVEYS = 4096;
const DAY_S = 86_400;
const LONGEST_S = 366 * DAY_S;
const MAX_TIME_S = 2 ** 40;
const SIGNED = new TextEncoder().encode('hubbub survey list\0');
/** Ed25519: the field's prime, and what y is at the points of small order, which anybody can sign for. */
const PRIME = 2n ** 255n - 19n;
const OF_ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;
const SMALL_ORDER = [0n, 1n, PRIME - 1n, OF_ORDER_8, PRIME - OF_ORDER_8];

/**
 * @typedef {object} SurveyList
 * @property {number} sequence
 * @property {number} issued_s
 * @property {number} expires_s
 * @property {Uint8Array[]} surveys canonical bytes
 * @property {Uint8Array[]} digests of those, in their order
 * @property {Uint8Array[]} cancelled digests
 */

/** @param {Value} value @param {number} most */
function binaries(value, most) {
  const found = array(value).map(binary);
  must(found.length <= MAX_SURVEYS, 'at most 4,096');
  must(found.every((bytes) => bytes.length <= most), 'a binary too long');
  return found;
}

/** Return the canonical bytes of a plain list's surveys. @param {Uint8Array} data */
export function readPlainList(data) {
  const [version, surveys] = arrayOf(read(data), 2);
  integer(version, 1n, 1n);
  return binaries(surveys, data.length);
}

/** Return what the payload of a signed list says; its signature is not looked at. @param {Uint8Array} data @returns {Promise<SurveyList>} */
export async function readPayload(data) {
  const value = read(data);
  must(equal(write(value), data), 'another encoding');
  const fields = arrayOf(value, 6);
  integer(fields[0], 1n, 1n);
  const sequence = whole(fields[1], 1, 2 ** 53 - 1);
  const issued_s = whole(fields[2], 0, MAX_TIME_S);
  const expires_s = whole(fields[3], issued_s + 1, Math.min(issued_s + LONGEST_S, MAX_TIME_S));
  const surveys = binaries(fields[4], MAX_BYTES);
  const cancelled = binaries(fields[5], 16);
  must(cancelled.every((digest) => digest.length === 16), 'digests of 16 bytes');
  const digests = await Promise.all(surveys.map(digestOf));
  const all = [...digests, ...cancelled].map((digest) => digest.join());
  must(new Set(all).size === all.length, 'a survey twice');
  return { sequence, issued_s, expires_s, surveys, digests, cancelled };
}

/** Return whether a public key is a point's one encoding and not of small order. @param {Uint8Array} key */
function sound(key) {
  let y = 0n;
  for (let i = 31; i >= 0; i--) y = (y << 8n) | BigInt(i === 31 ? key[i] & 0x7f : key[i]);
  return key.length === 32 && y < PRIME && !SMALL_ORDER.includes(y);
}

/**
 * Return whether a key signed a message; a key of small order, or in another encoding, signs nothing.
 *
 * @param {Uint8Array} key Ed25519, 32 bytes
 * @param {Uint8Array} message
 * @param {Uint8Array} signature 64 bytes
 */
export async function isSigned(key, message, signature) {
  if (!sound(key) || signature.length !== 64) return false;
  try {
    const [raw, told, given] = /** @type {BufferSource[]} */ ([key, message, signature]);
    const own = await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify']);
    return await crypto.subtle.verify({ name: 'Ed25519' }, own, given, told);
  } catch {
    return false;
  }
}

/**
 * Return what a signed list says, if the key signed it.
 *
 * @param {Uint8Array} key Ed25519, 32 bytes
 * @param {Uint8Array} data
 * @throws {import('./msgpack.js').Refused} It did not, or the list breaks a rule.
 */
export async function readSignedList(key, data) {
  const [name, inside, signature] = arrayOf(read(data), 3);
  must(text(name) === 'hubbub-survey-list', 'no signed list');
  const payload = binary(inside);
  const message = new Uint8Array(SIGNED.length + payload.length);
  message.set(SIGNED);
  message.set(payload, SIGNED.length);
  must(await isSigned(key, message, binary(signature)), 'a signature that the key did not make');
  return readPayload(payload);
}
