/**
 * A line of a case in, a line of its result out: docs/conformance.md, by this device's core.
 *
 * @module
 */

import { placesIn } from '../src/agent/dictionary.js';
import { packed } from '../src/channels/distance.js';
import { readPayload, readPlainList, readSignedList } from '../src/lists.js';
import { Refused, array, arrayOf, binary, float, must, read, whole } from '../src/msgpack.js';
import { FixedBytes, SEED_BYTES } from '../src/random.js';
import { readSymbol, readUpload } from '../src/reports.js';
import { slotInCycle } from '../src/rotation.js';
import { MAX_ROTATION, Survey, digestOf } from '../src/survey.js';
import { WiderFilter } from '../src/wider_filter.js';
import { readOutcomes, writeReport, writeUpload } from '../src/wire.js';

/** @typedef {import('../src/msgpack.js').Value} Value */

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {string} text */
function unhex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {number | Uint8Array} symbol */
function told(symbol) {
  return typeof symbol === 'number' ? String(symbol) : hex(symbol);
}

/** @param {Uint8Array[]} digests */
function words(digests) {
  return digests.map((digest) => ` ${hex(digest)}`).join('');
}

/** @param {Uint8Array[]} parts */
async function survey([canonical]) {
  const found = await Survey.read(canonical);
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, found.certified);
  return `certified ${hex(found.digest)} ${hex(new Uint8Array(bits.buffer))}`;
}

/** Return an input in words: part and cell of a bundle, a set in hexadecimal. @param {number | number[]} input @param {Survey} survey */
function asked(input, { form, channel }) {
  if (typeof input === 'number') return String(input);
  if (form.part) return input.join(':');
  return hex(packed(Array.from({ length: channel.inputs }, (_, i) => input.includes(i))));
}

/** @param {Uint8Array[]} parts */
async function answer([canonical, values, id, round, random]) {
  return answered(await Survey.read(canonical), array(read(values)), id, round, random);
}

/** @param {Survey} found @param {Value[]} values @param {Uint8Array} id @param {Uint8Array} round @param {Uint8Array} random */
function answered(found, values, id, round, random) {
  const source = new FixedBytes(random);
  const number = whole(read(round), 0, 2 ** 31 - 1);
  const part = found.form.part?.(source.take(SEED_BYTES), number);
  const input = found.input(values, source, part);
  const symbol = found.channel.draw(input, source);
  const identity = new Uint8Array([...found.digest, ...id]);
  const report = writeReport({ identity, round: number, symbol });
  return `answer ${asked(input, found)} ${told(symbol)} ${source.used} ${hex(writeUpload([report]))}`;
}

/** Answer with texts that are looked up in a dictionary, as the agent looks them up. @param {Uint8Array[]} parts */
async function lookedUp([canonical, values, id, round, random, dictionary]) {
  const found = await Survey.read(canonical);
  const held = array(read(values));
  for (const { domain } of found.attributes) {
    if (domain.type !== 'dictionary') continue;
    const places = await placesIn(dictionary, domain);
    for (const [i, value] of held.entries()) held[i] = await places(value);
  }
  return answered(found, held, id, round, random);
}

/** @param {Uint8Array[]} parts */
async function weights([canonical, symbol]) {
  const found = await Survey.read(canonical);
  return ['weights', ...found.channel.column(readSymbol(read(symbol)))].join(' ');
}

/** @param {WiderFilter} account @param {Survey[]} surveys @param {Value} step */
function taken(account, surveys, step) {
  const [kind, ...fields] = array(step);
  must(kind !== undefined, 'no step');
  const ticket = () => whole(fields[0], 0, 2 ** 32);
  /** @param {Value} listed */
  const coordinates = (listed) => array(listed).map((key) => whole(key, 0, 2 ** 32));
  switch (whole(kind, 0, 4) * 10 + fields.length) {
    case 1: {
      const queries = array(fields[0]).map((query) => {
        const [keys, place] = arrayOf(query, 2);
        const own = surveys[whole(place, 0, surveys.length - 1)];
        return { keys: coordinates(keys), survey: own };
      });
      return account.reserve(queries) ? 'yes' : 'no';
    }
    case 12: account.record(ticket(), readSymbol(fields[1])); return 'yes';
    case 21: account.cancel(ticket()); return 'yes';
    case 31: account.close(ticket()); return 'yes';
    case 43: return account.resolve(ticket(), readSymbol(fields[1]), coordinates(fields[2]));
    default: throw new Refused('an unknown step');
  }
}

/** @param {Uint8Array[]} parts @param {boolean} full */
async function filter([budget, listed, steps], full) {
  const surveys = [];
  for (const bytes of array(read(listed))) surveys.push(await Survey.read(binary(bytes)));
  surveys.forEach((each) => each.channel.distance());
  const account = new WiderFilter(float(read(budget)), full);
  const found = ['filter'];
  for (const step of array(read(steps))) {
    let word = 'refused';
    try {
      word = taken(account, surveys, step);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    found.push(`${word}:${account.committed}:${account.loss}`);
  }
  return found.join(' ');
}

/** @param {Uint8Array[]} parts */
function upload([data]) {
  const reports = readUpload(data).map((report) =>
    report === null ? 'invalid' : `${hex(report.identity)}:${report.round}:${told(report.symbol)}`,
  );
  return ['upload', ...reports].join(' ');
}

/** @param {Uint8Array[]} parts */
function slots([seed, drawn]) {
  const [rotation, first, many] = arrayOf(read(drawn), 3);
  const cycles = whole(rotation, 2, MAX_ROTATION);
  const cycle = whole(first, 0, 2 ** 32 - 100);
  const found = Array.from({ length: whole(many, 0, 99) }, (_, i) => slotInCycle(seed, cycle + i, cycles));
  return ['slots', ...found].join(' ');
}

/** @param {import('../src/lists.js').SurveyList} list */
function listed({ sequence, issued_s, expires_s, digests, cancelled }) {
  return `list ${sequence} ${issued_s} ${expires_s}${words(digests)} cancelled${words(cancelled)}`;
}

/** Kinds of cases: how many parts each has, and its words. @type {Record<string, [number, (parts: Uint8Array[]) => string | Promise<string>]>} */
const KINDS = {
  survey: [1, survey],
  answer: [5, answer],
  'looked-up': [6, lookedUp],
  weights: [2, weights],
  filter: [3, (parts) => filter(parts, true)],
  simplified: [3, (parts) => filter(parts, false)],
  slots: [2, slots],
  upload: [1, upload],
  list: [1, async ([data]) => `plain${words(await Promise.all(readPlainList(data).map(digestOf)))}`],
  payload: [1, async ([data]) => listed(await readPayload(data))],
  signed: [2, async ([key, data]) => listed(await readSignedList(key, data))],
  response: [1, ([data]) => ['response', ...readOutcomes(data)].join(' ')],
};

/**
 * Return the words of a case; "skipped" for a kind that no device has.
 *
 * @param {string} line
 */
export async function result(line) {
  const [kind, ...texts] = line.split('\t');
  if (!Object.hasOwn(KINDS, kind)) return 'skipped';
  const [many, words] = KINDS[kind];
  try {
    must(texts.length === many, 'another number of parts');
    return await words(texts.map(unhex));
  } catch (error) {
    if (error instanceof Refused) return 'refused';
    throw error;
  }
}
