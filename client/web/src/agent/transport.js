/**
 * The way to one collector: requests bounded in time and size, padded, and without anything that tells devices apart.
 *
 * @module
 */

import { DeviceError } from './ledger.js';

const UPLOAD_MS = 15_000;
const SURVEYS_MS = 60_000;
const MAX_OUTCOMES_BYTES = 2 ** 16;
const MAX_LIST_BYTES = 2 ** 25;
const SMALLEST_STEP = 1024;
const LARGEST_STEP = 4096;

/** @typedef {{status: number, body: Uint8Array, retryAfter: string | null}} Response */
/** @typedef {{get: (path: string) => Promise<Response>, post: (path: string, body: Uint8Array) => Promise<Response>}} Transport */

/** Return the characters that make a post 1, 2 or 4 KiB long, or a multiple of 4 KiB. @param {number} length of its body */
export function padding(length) {
  const size = length + String(length).length;
  let step = SMALLEST_STEP;
  while (step < Math.min(size, LARGEST_STEP)) step *= 2;
  return '0'.repeat((step - (size % step)) % step);
}

/** Return an answer's body, of so many bytes at most. @param {globalThis.Response} answer @param {number} most */
export async function bodyOf(answer, most) {
  const parts = [];
  let size = 0;
  const reader = answer.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    size += part.value.length;
    if (size > most) {
      reader?.cancel();
      throw new DeviceError('collector', `an answer must be at most ${most} bytes`);
    }
    parts.push(part.value);
  }
  const found = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found;
}

/**
 * Return the transport to a collector.
 *
 * @param {string} collector its address; a path is kept as a prefix
 * @returns {Transport}
 * @throws {DeviceError} It is no address of https, or of http on this machine.
 */
export function transportTo(collector) {
  const url = URL.canParse(collector) ? new URL(collector) : null;
  const local = url !== null && /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && local)) {
    throw new DeviceError('collector', `collector must be https://, or http:// to this machine, got ${collector}`);
  }
  const base = collector.replace(/\/+$/, '');
  /** @param {string} path @param {RequestInit} how @param {number} most @param {number} ms */
  async function request(path, how, most, ms) {
    /** @type {RequestInit} */
    const always = { mode: 'cors', credentials: 'omit', referrerPolicy: 'no-referrer', cache: 'no-store', redirect: 'error' };
    try {
      const answer = await fetch(base + path, { ...always, ...how, signal: AbortSignal.timeout(ms) });
      return { status: answer.status, body: await bodyOf(answer, most), retryAfter: answer.headers.get('retry-after') };
    } catch (error) {
      if (error instanceof DeviceError) throw error;
      throw new DeviceError('collector', 'the collector cannot be reached, or does not list this origin');
    }
  }
  return {
    get: (path) => request(path, {}, MAX_LIST_BYTES, SURVEYS_MS),
    post: (path, body) => {
      const headers = { 'content-type': 'application/msgpack', padding: padding(body.length) };
      return request(path, { method: 'POST', body: /** @type {BodyInit} */ (body), headers }, MAX_OUTCOMES_BYTES, UPLOAD_MS);
    },
  };
}
