/**
 * A log of what was published, as a stranger reads it whole: who signed its checkpoint, and what is entered.
 *
 * Formats: c2sp.org/signed-note, tlog-checkpoint, tlog-cosignature (v1) and tlog-tiles; an entry is Hubbub's.
 *
 * @module
 */

import { isSigned } from '../lists.js';
import { array, binary, equal, integer, must, read, text, write } from '../msgpack.js';
import { hex, sum } from './counts.js';

/** @typedef {import('../msgpack.js').Value} Value */
/** The key of a log (kind 1) or of a witness (4). @typedef {{name: string, kind: number, id: string, public: Uint8Array}} Key */
/** One entry: its place, its fields behind the kind. @typedef {{place: number, fields: Value[]}} Entry */
/** Bytes at a path below the log's. @typedef {(path: string) => Promise<Uint8Array>} Get */

const TILE = 256;
const MOST = 2n ** 63n - 1n;
/** How many fields behind the number of an entry's kind are what it is about. */
const KEYS = [0, 1, 1, 2, 2, 3, 2, 1];
const RELEASE = 4;
const COUNTED = 6;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();

/** @param {...Uint8Array} parts */
async function sha256(...parts) {
  const data = new Uint8Array(sum(parts.map(({ length }) => length)));
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', data));
}

/** Return the bytes of their one text in base64. @param {string} packed */
function unpacked(packed) {
  must(/^[A-Za-z0-9+/]+=*$/.test(packed) && packed.length % 4 === 0, 'base64');
  const letters = atob(packed);
  must(btoa(letters) === packed, 'another text in base64');
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

/** Return the key of the text that `hubbub log keygen` or `hubbub witness keygen` printed. @param {string} told @param {number} kind */
export async function readKey(told, kind) {
  const [, name, id, packed] = /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(told.trim()) ?? [];
  must(packed !== undefined, 'a key must be NAME+ID+KEY');
  const data = unpacked(packed);
  const due = hex((await sha256(ENCODER.encode(`${name}\n`), data)).slice(0, 4));
  must(data.length === 33 && data[0] === kind && id === due, `a key must be that of a ${kind === 1 ? 'log' : 'witness'}`);
  return { name, kind, id, public: data.slice(1) };
}

/** Return text and signatures of a note. @param {Uint8Array} data */
function readNote(data) {
  const whole = UTF8.decode(data);
  const end = whole.lastIndexOf('\n\n');
  must(end > 0 && whole.endsWith('\n') && !/[\0-\x09\x0b-\x1f]/.test(whole), 'a note');
  const signatures = whole.slice(end + 2, -1).split('\n').map((line) => {
    const [dash, name, packed, ...more] = line.split(' ');
    must(dash === '\u2014' && packed !== undefined && more.length === 0, 'a signature');
    return { name, data: unpacked(packed) };
  });
  return { text: whole.slice(0, end + 1), signatures };
}

/** Return whether a key signed a note; of a witness, whatever time it says. @param {Key} key @param {ReturnType<readNote>} note */
async function hasSigned(key, note) {
  for (const { name, data } of note.signatures) {
    if (name !== key.name || hex(data.slice(0, 4)) !== key.id) continue;
    const signature = data.slice(key.kind === 1 ? 4 : 12);
    const at = data.slice(4, 12).reduce((held, byte) => held * 256n + BigInt(byte), 0n);
    const message = key.kind === 1 ? note.text : `cosignature/v1\ntime ${at}\n${note.text}`;
    if (await isSigned(key.public, ENCODER.encode(message), signature)) return true;
  }
  return false;
}

/** Return the root over the entries' bytes, by RFC 6962. @param {Uint8Array[]} entries */
async function rootOf(entries) {
  let level = await Promise.all(entries.map((entry) => sha256(Uint8Array.of(0), entry)));
  if (!level.length) return sha256();
  while (level.length > 1) {
    const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, i) => level.slice(2 * i, 2 * i + 2));
    level = await Promise.all(pairs.map((pair) => (pair.length > 1 ? sha256(Uint8Array.of(1), ...pair) : pair[0])));
  }
  return level[0];
}

/** Yield the bytes of all entries. @param {Get} get @param {number} size */
async function* bundles(get, size) {
  for (let number = 0; number * TILE < size; number++) {
    const width = Math.min(TILE, size - number * TILE);
    const groups = number.toLocaleString('en').split(',').map((group) => group.padStart(3, '0'));
    const place = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join('/');
    const data = await get(`tile/entries/${place}${width < TILE ? `.p/${width}` : ''}`);
    let at = 0;
    for (let i = 0; i < width; i++) {
      const end = at + 2 + data[at] * 256 + data[at + 1];
      must(end <= data.length, 'entries that are cut off');
      yield data.slice(at + 2, end);
      at = end;
    }
    must(at === data.length, 'entries that end with the last one');
  }
}

/** A log whose entries lead to a checkpoint that its key signed, and more than half of the witnesses. */
export class SeenLog {
  /** @param {string[]} seen names of witnesses @param {Uint8Array[]} entries */
  constructor(seen, entries) {
    this.seen = seen;
    /** What an honest log has not. @type {string[]} */
    this.faults = [];
    /** @type {Map<string, Entry>} */
    this.first = new Map();
    entries.forEach((data, place) => {
      try {
        const fields = array(read(data));
        must(equal(write(fields), data) && text(fields[0]) === 'hubbub-log', 'an entry');
        integer(fields[1], 1n, 1n);
        const kind = Number(integer(fields[2], 1n, BigInt(KEYS.length - 1)));
        const key = hex(write(fields.slice(2, 3 + KEYS[kind])));
        const first = this.first.get(key);
        if (first === undefined) this.first.set(key, { place, fields: fields.slice(3) });
        else this.faults.push(`entry ${place} of the log is a second one of what entry ${first.place} is about`);
      } catch {
        this.faults.push(`entry ${place} of the log cannot be read`);
      }
    });
  }

  /** @param {number} kind @param {Uint8Array} digest @param {number} round */
  of(kind, digest, round) {
    return this.first.get(hex(write([BigInt(kind), digest, BigInt(round)])));
  }

  /**
   * Return what the log says of a release, and whether that is right.
   *
   * @param {Uint8Array} digest the survey's
   * @param {number} round from 1
   * @param {Uint8Array} data the release's bytes
   * @param {number} accepted how many answers it says that it counted
   * @returns {Promise<{isRight: boolean, words: string}>}
   */
  async about(digest, round, data, accepted) {
    const found = this.of(RELEASE, digest, round);
    if (found === undefined) return { isRight: false, words: 'is not in the log' };
    if (!equal(binary(found.fields[2]), await sha256(data))) {
      return { isRight: false, words: `another release than that of the log, at ${found.place}` };
    }
    const words = `in the log at ${found.place}, seen by ${this.seen.join(', ') || 'no witness'}`;
    const counted = this.of(COUNTED, digest, round);
    if (counted === undefined) return { isRight: true, words: `${words}; devices cannot look for their answers there` };
    const n = integer(counted.fields[2], 0n, MOST);
    if (n === BigInt(accepted)) return { isRight: true, words };
    return { isRight: false, words: `entry ${counted.place} lists ${n} answers, ${accepted} are counted` };
  }
}

/**
 * Return a log, if its key and more than half of the witnesses signed what it is.
 *
 * @param {Get} get
 * @param {Key} key
 * @param {Key[]} witnesses
 * @throws {import('../msgpack.js').Refused} They did not, or it is other bytes.
 */
export async function readLog(get, key, witnesses) {
  must(new Set(witnesses.map((each) => hex(each.public))).size === witnesses.length, 'a witness must be given once');
  const note = readNote(await get('checkpoint'));
  const [origin, size, root, ...more] = note.text.split('\n');
  must(more.length > 0 && origin === key.name && /^(0|[1-9]\d{0,14})$/.test(size), `a checkpoint must be of ${key.name}`);
  must(await hasSigned(key, note), `a checkpoint must be signed by ${key.name}`);
  /** @type {string[]} */
  const seen = [];
  for (const each of witnesses) if (await hasSigned(each, note)) seen.push(each.name);
  const quorum = witnesses.length ? Math.floor(witnesses.length / 2) + 1 : 0;
  must(seen.length >= quorum, `a checkpoint must be seen by ${quorum} witnesses, got ${seen.length}`);
  const entries = [];
  for await (const entry of bundles(get, Number(size))) entries.push(entry);
  must(equal(await rootOf(entries), unpacked(root)), "a log's entries must be those of its checkpoint");
  return new SeenLog(seen.sort(), entries);
}
