/**
 * Dictionaries: the places of texts in a file that a survey names by its digest. A page loads this for such surveys alone.
 *
 *     const sites = new Dictionary('/sites.bin', 7, 'a3f0...');
 *     const agent = await openAgent({ ..., attributes: [{ id: 'site', kind: 'static', type: 'dictionary', domain: sites.domain }] });
 *     await agent.set('site', await sites.placeOf('caf\u00e9'));
 *
 * @module
 */

import { Refused, equal, must } from '../msgpack.js';
import { DeviceError } from './ledger.js';
import { hex, unhex } from './schedule.js';
import { bodyOf } from './transport.js';

const HASH_BYTES = 8;
const FETCH_MS = 300_000;

/** A dictionary as a survey names it. @typedef {{high: number, digest: Uint8Array}} Named */
/** @typedef {(text: unknown) => Promise<number>} Places the place of a text, that after the last for whatever has none */

/** @param {BufferSource} data */
const sha256 = async (data) => new Uint8Array(await crypto.subtle.digest('SHA-256', data));

/** A dictionary at an address, fetched once a text is looked up. */
export class Dictionary {
  /** @type {Promise<Places> | null} */
  #places = null;

  /**
   * @param {string} url
   * @param {number} texts how many it has
   * @param {string} digest SHA-256 of the file, in hex, as the survey names it
   */
  constructor(url, texts, digest) {
    this.url = url;
    /** What an attribute is declared with. @type {[number, Uint8Array]} */
    this.domain = [texts, unhex(digest)];
  }

  /**
   * Return the place of a text, for `Agent.set`; that after the last for whatever is not in the file.
   *
   * @param {unknown} text
   * @throws {DeviceError} The file cannot be fetched, or is another one.
   */
  async placeOf(text) {
    this.#places ??= this.#fetched();
    try {
      return await (await this.#places)(text);
    } catch (error) {
      this.#places = null; // another try may have it
      throw error instanceof Refused ? new DeviceError('dictionary', `${this.url}: ${error.message}`) : error;
    }
  }

  async #fetched() {
    const [texts, digest] = this.domain;
    const how = /** @type {const} */ ({ credentials: 'omit', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(FETCH_MS) });
    const answer = await fetch(this.url, how).catch(() => null);
    if (!answer?.ok) throw new DeviceError('dictionary', `the dictionary at ${this.url} cannot be fetched`);
    return placesIn(await bodyOf(answer, HASH_BYTES * texts), { high: texts - 1, digest });
  }
}

/**
 * Return the places of a dictionary's texts.
 *
 * @param {Uint8Array} data
 * @param {Named} domain
 * @returns {Promise<Places>}
 * @throws {import('../msgpack.js').Refused} It is another dictionary.
 */
export async function placesIn(data, { high, digest }) {
  const size = high + 1;
  const found = await sha256(/** @type {BufferSource} */ (data));
  must(data.length === HASH_BYTES * size && equal(found, digest), `a dictionary must have digest ${hex(digest)}, got ${hex(found)}`);
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  /** @param {number} place */
  const at = (place) => view.getBigUint64(HASH_BYTES * place);
  for (let place = 1; place < size; place++) must(at(place - 1) < at(place), 'a dictionary must have its hashes rising');
  return async (text) => {
    // A half of a pair has no bytes in UTF-8: it is in no file of texts.
    if (typeof text !== 'string' || /\p{Surrogate}/u.test(text)) return size;
    const own = await sha256(new TextEncoder().encode(text.normalize('NFC')));
    const wanted = new DataView(own.buffer).getBigUint64(0);
    let [low, high] = [0, size];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return low < size && at(low) === wanted ? low : size;
  };
}
