/**
 * The device agent of a page: answers surveys without ever sending a value.
 *
 *     const agent = await openAgent({ collector, budget: 4, surveyKeys, attributes });
 *     await agent.set('visits', 3);
 *     await agent.optIn('visits');
 *     await agent.refresh();   // takes part in what the collector asks, where owner, policy and budget allow it
 *     await agent.answer();
 *     await agent.upload();
 *
 * The unit of privacy is the whole record of the owner in this browser's site data, all attributes over all rounds: for
 * any two records, the probability of all that is ever sent differs by a factor of at most e^budget. Site data can be
 * cleared: then another ledger begins, and its budget adds for whoever links the two.
 *
 * @module
 */

import { readPlainList, readSignedList } from '../lists.js';
import { Refused, array, binary, equal, read } from '../msgpack.js';
import { SEED_BYTES, SystemBytes } from '../random.js';
import { Attribute } from '../attribute.js';
import { Survey } from '../survey.js';
import { UNIT } from '../filter.js';
import { writeReport } from '../wire.js';
import { Account } from './account.js';
import { DeviceError, Ledger } from './ledger.js';
import { FORMS, MEMOISED, hex, isDrawn, isStatic, lastClosed, listedInputs, mostSlots, roundAt, slotsAfter, unhex } from './schedule.js';
import { askToStay, mustBeFirstParty } from './surroundings.js';
import { transportTo } from './transport.js';
import { LIMITS, afterwards, choose } from './uploads.js';

/** @typedef {import('../msgpack.js').Value} Value */
/** A value as a ledger keeps it, null for missing. @typedef {string | number | string[] | null} Kept */
/** @typedef {import('./ledger.js').Change} Change */
/** @typedef {import('./account.js').Step} Step */
/** A value that a transition of a later round asks for. @typedef {{digest: string, round: number, value: Kept}} Past */
/** @typedef {{id: string, kind: 'static' | 'evolving', type: 'label' | 'integer' | 'number' | 'set' | 'dictionary', domain: string[] | [number, number] | [number, number, 'absent'] | [number, Uint8Array]}} Declared */
/** @typedef {{digest: string, id: string, version: number, title: string, epsilon: number, status: 'enrolled' | 'refused', reason: string | null}} Enrolment */

/**
 * What surveys may ask.
 *
 * @typedef {object} Policy
 * @property {number} [maxEpsilon] of one answer
 * @property {string[]} [attributes] that may be asked for; every declared one without it
 * @property {'yes' | 'no'} [requireOptIn] "no": the host vouches that the owner agreed; a no is heeded all the same
 * @property {number} [maxSlots] answers of one survey that cost budget
 */

/**
 * @typedef {object} Settings
 * @property {string} collector where reports go: https, or http on this machine
 * @property {number} budget lifetime epsilon of the owner's whole record, fixed by the first opening
 * @property {string[]} [surveyKeys] Ed25519, 64 hex digits each; without one the collector chooses surveys
 * @property {Declared[]} attributes what surveys may be about; surveys never declare any
 * @property {Policy} [policy]
 * @property {boolean} [ephemeral] take part in a third-party frame or a private window, where the ledger is short-lived
 * @property {Partial<typeof LIMITS>} [limits] of uploads
 * @property {() => number | null} [clock] seconds since 1970, null while they are not trusted: then nothing is answered
 * @property {import('./transport.js').Transport} [transport]
 */

const MAX_LIFE_S = 366 * 86_400;
const SKEW_S = 86_400;
const MAX_SLOTS = 10_000;
/** Inputs of all surveys that are read of one list, and what a small survey and an unreadable one count as. */
const MAX_LISTED = 2 ** 20;
const LEAST_LISTED = 100;
const UNREADABLE = 2 ** 12;

/** Return an attribute of the core. @param {Value[]} spec */
const attributeOf = (spec) => new Attribute(spec);

/** Return what a host declares as the core reads it. @param {Declared} declared @returns {Value[]} */
function specOf({ id, kind, type, domain }) {
  const ends = domain.map((end) => (type !== 'number' && typeof end === 'number' ? BigInt(end) : end));
  const spec = [id, kind, type, ends];
  attributeOf(spec);
  return spec;
}

/** Return a text that is the same for equal attributes. @param {Attribute} attribute */
function told({ id, kind, domain }) {
  return JSON.stringify([id, kind, domain]);
}

/** Return a value as a ledger keeps it: null for whatever is not in the domain. @param {Attribute} attribute @param {unknown} value @returns {Kept} */
function normal(attribute, value) {
  const { domain } = attribute;
  if (attribute.tellsAbsent() && value === 'absent') return value;
  if (domain.type === 'number') return attribute.number(/** @type {Value} */ (value))?.[1] ?? null;
  if (domain.type === 'set') return attribute.items(/** @type {Value} */ (value))?.map((place) => domain.labels[place]) ?? null;
  const index = attribute.index(/** @type {Value} */ (value));
  if (index === attribute.size()) return null;
  return domain.type === 'label' ? domain.labels[index] : domain.low + index;
}

/** Return the subject of a yes or no. @param {string} asked an attribute's id, or a survey's digest in hex */
function subject(asked) {
  return /^[0-9a-f]{32}$/.test(asked) ? `survey ${asked}` : `attribute ${asked}`;
}

/**
 * Open this browser's device for a collector.
 *
 * @param {Settings} settings
 * @throws {DeviceError} This is no place for a ledger, or it was made with another budget or other attributes.
 */
export async function openAgent(settings) {
  mustBeFirstParty(settings.ephemeral === true);
  const transport = settings.transport ?? transportTo(settings.collector);
  const name = `hubbub:${settings.collector.replace(/\/+$/, '')}`;
  new Account(settings.budget, { loss: 0, committed: 0 }); // refuses what is no budget
  const ledger = await Ledger.open(name, settings.budget);
  if (ledger.device.budget !== settings.budget) {
    throw new DeviceError('budget', `budget must be as it was fixed, ${ledger.device.budget}, got ${settings.budget}`);
  }
  const agent = new Agent(name, ledger, transport, settings);
  await agent.begin(settings.attributes);
  return agent;
}

export class Agent {
  #source = new SystemBytes();
  /** @type {Map<string, Survey>} */
  #surveys = new Map();
  /** Values that the host has set, and when. @type {Map<string, {value: Kept, since_s: number}>} */
  #told = new Map();
  /** @type {Enrolment[]} */
  #asked = [];
  #ready = false;
  #name;
  #ledger;
  #transport;
  #keys;
  #policy;
  #limits;
  #clock;
  #account;
  /** "persisted" where the browser has promised to keep site data until the owner clears them. @type {'per-site-data' | 'persisted'} */
  label = 'per-site-data';

  /** @param {string} name @param {Ledger} ledger @param {import('./transport.js').Transport} transport @param {Settings} settings */
  constructor(name, ledger, transport, { surveyKeys = [], policy = {}, limits = {}, clock = () => Date.now() / 1000 }) {
    this.#name = name;
    this.#ledger = ledger;
    this.#transport = transport;
    this.#keys = surveyKeys.map(unhex);
    this.#policy = policy;
    this.#limits = { ...LIMITS, ...limits };
    this.#clock = clock;
    this.#account = new Account(ledger.device.budget, ledger.device.closed);
  }

  /** Declare the attributes, and read the ledger. @param {Declared[]} attributes */
  async begin(attributes) {
    this.label = (await askToStay()) ? 'persisted' : 'per-site-data';
    await this.#decide(() => {
      /** @type {Change[]} */
      const changes = [];
      for (const declared of attributes) {
        const spec = specOf(declared);
        const known = this.#ledger.tables.attributes.get(declared.id);
        if (known && told(attributeOf(known.spec)) !== told(attributeOf(spec))) {
          throw new DeviceError('attribute', `attribute ${declared.id} must be as first declared: same kind and domain`);
        }
        if (!known) changes.push(['attributes', declared.id, { spec, version: 0, memo: null, kept: null, past: [] }]);
      }
      return [changes, null];
    });
  }

  #now() {
    const now_s = this.#clock();
    return now_s !== null && Math.abs(now_s) < 2 ** 53 ? now_s : null;
  }

  /** Read the ledger anew, and the filter with it. */
  async #reload() {
    this.#ready = false;
    await this.#ledger.load();
    for (const [digest, { canonical }] of this.#ledger.tables.enrolments) {
      if (!this.#surveys.has(String(digest))) this.#surveys.set(String(digest), await Survey.read(canonical));
    }
    this.#account = this.#replayed(this.#ledger.device.budget, () => true);
    this.#ready = true;
  }

  /** Return the account of the steps that a rule lets through. @param {number} budget @param {(step: Step) => boolean} counts */
  #replayed(budget, counts) {
    const account = new Account(budget, this.#ledger.device.closed);
    for (const step of this.#ledger.tables.transcript.values()) {
      if (!counts(step)) continue;
      if (!account.take(step, this.#survey(step.digest))) {
        throw new DeviceError('ledger', 'the ledger does not add up: a reservation is beyond the budget');
      }
    }
    return account;
  }

  /** @param {string} digest */
  #survey(digest) {
    const found = this.#surveys.get(digest);
    if (!found) throw new DeviceError('ledger', 'the ledger names a survey that it does not hold');
    return found;
  }

  /**
   * Decide on the ledger's state and write what follows in one transaction, before this resolves.
   *
   * The decision is taken in memory, and taken anew if another context has written meanwhile; what it drew is then
   * thrown away.
   *
   * @template T
   * @param {() => [Change[], T]} decision
   * @returns {Promise<T>}
   */
  async #decide(decision) {
    return this.#alone(async () => {
      for (;;) {
        if (!this.#ready) await this.#reload();
        // Until it is written, what it does to the account is ahead of the ledger.
        this.#ready = false;
        const [changes, result] = decision();
        if (changes.length ? await this.#ledger.commit(changes) : await this.#ledger.isCurrent()) {
          this.#ready = true;
          return result;
        }
      }
    });
  }

  /** Read under the lock, from memory that is what the ledger holds. @template T @param {() => T} reading */
  async #read(reading) {
    return this.#alone(async () => {
      if (!this.#ready || !(await this.#ledger.isCurrent())) await this.#reload();
      return reading();
    });
  }

  /** Run while no other tab of this device does. @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  async #alone(work) {
    return await /** @type {any} */ (navigator.locks.request(this.#name, work));
  }

  /** Return the change that adds a step to the transcript. @param {Step} step @param {number} [place] after its end @returns {Change} */
  #step(step, place = 1) {
    return ['transcript', this.#ledger.tables.transcript.size + place, step];
  }

  /**
   * Take a value from now on; whatever is not in the domain is "missing". Of a text in a dictionary the value is its place.
   *
   * A static value stays once an answer has read it, missing included.
   *
   * @param {string} id
   * @param {unknown} value
   */
  async set(id, value) {
    const now_s = this.#now();
    await this.#decide(() => {
      const row = this.#declared(id);
      const attribute = attributeOf(row.spec);
      const found = normal(attribute, value);
      if (row.memo) {
        if (JSON.stringify(row.memo.value) === JSON.stringify(found)) return [[], null];
        throw new DeviceError('pinned', `attribute ${id} is static and was pinned by its first answer`);
      }
      this.#told.set(id, { value: found, since_s: now_s ?? 0 });
      if (attribute.kind === 'static' || now_s === null) return [[], null];
      const ends = this.#openRounds(now_s).filter(([survey]) => survey.attributes.some((each) => each.id === id))
        .map(([survey, round]) => survey.start_s + (round + 1) * survey.round_s);
      if (ends.length === 0 && row.kept === null) return [[], null];
      // Kept while a round waits for it, so that a reload does not turn it into "missing".
      const kept = ends.length ? { value: found, since_s: now_s, until_s: Math.max(...ends) } : null;
      return [[['attributes', id, { ...row, kept }]], null];
    });
  }

  /** @param {string} id */
  #declared(id) {
    const row = this.#ledger.tables.attributes.get(id);
    if (!row) throw new DeviceError('attribute', `attribute ${id} must be declared first`);
    return row;
  }

  /** Store the owner's yes. @param {string} asked an attribute's id, or a survey's digest in hex */
  async optIn(asked) {
    await this.#decide(() => [[['consents', subject(asked), true]], null]);
  }

  /** Store the owner's no, and leave what it concerns; what was answered stays spent. @param {string} asked */
  async leave(asked) {
    await this.#decide(() => {
      const { enrolments } = this.#ledger.tables;
      const concerned = [...enrolments].filter(
        ([digest, { state }]) =>
          state === 'active' && (digest === asked || this.#survey(String(digest)).attributes.some(({ id }) => id === asked)),
      );
      return [[['consents', subject(asked), false], ...this.#ended(concerned, 'left')], null];
    });
  }

  /** Return the changes that end surveys, and withdraw what waits for them. @param {[import('./ledger.js').Key, any][]} rows @param {string} state @returns {Change[]} */
  #ended(rows, state) {
    const { answers, attributes, outbox } = this.#ledger.tables;
    const digests = rows.map(([digest]) => digest);
    const held = [...attributes].filter(([, { past = [] }]) => past.some((/** @type {Past} */ each) => digests.includes(each.digest)));
    const waiting = [...outbox].filter(([, { name }]) => digests.includes(answers.get(name).digest));
    return [
      ...rows.map(([digest, row]) => /** @type {Change} */ (['enrolments', digest, { ...row, state }])),
      ...held.map(([id, row]) => /** @type {Change} */ (['attributes', id, { ...row, past: row.past.filter((/** @type {Past} */ each) => !digests.includes(each.digest)) }])),
      ...waiting.map(([key]) => /** @type {Change} */ (['outbox', key])),
      ...waiting.map(([, { name }]) => /** @type {Change} */ (['answers', name, { ...answers.get(name), outcome: 'withdrawn' }])),
    ];
  }

  /** Answer and send nothing, or go on. @param {boolean} paused */
  async pause(paused = true) {
    await this.#decide(() => [[['device', 'device', { paused }]], null]);
  }

  /**
   * Fetch the collector's list, end what it cancels, and take part in what owner, policy and budget allow.
   *
   * @returns {Promise<Enrolment[]>} every survey of the list, and why it was refused
   * @throws {DeviceError} There is no list, or it is not to be believed; `reason` says why.
   */
  async refresh() {
    const { status, body } = await this.#transport.get('/v1/surveys');
    if (status !== 200) throw new DeviceError('collector', `the collector must answer with 200, got ${status}`);
    const canonicals = this.#keys.length ? await this.#signed(body) : readPlainList(body);
    /** @type {Enrolment[]} */
    const found = [];
    let left = MAX_LISTED;
    for (const canonical of canonicals) {
      const survey = await Survey.read(canonical).catch((error) => {
        if (error instanceof Refused) return null; // not for this version of a device
        throw error;
      });
      left -= survey ? Math.max(LEAST_LISTED, listedInputs(survey)) : UNREADABLE;
      if (left < 0) break;
      if (survey) found.push(await this.#enrol(survey));
    }
    this.#asked = found;
    return found;
  }

  /** Return the surveys of a signed list, once it is written down as seen. @param {Uint8Array} data */
  async #signed(data) {
    const now_s = this.#now();
    if (now_s === null) throw new DeviceError('clock_not_trusted', 'a list must be judged by a trusted clock');
    let list = null;
    for (const key of this.#keys) list ??= await readSignedList(key, data).then((of) => ({ key, of }), () => null);
    if (list === null) throw new DeviceError('wrong_signature', 'a list must be signed by one of the keys');
    const payload = binary(array(read(data))[1]);
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (payload)));
    const { key, of } = list;
    const expired = await this.#decide(() => {
      const { lists, enrolments } = this.#ledger.tables;
      const known = this.#keys.map((each) => lists.get(hex(each))).filter(Boolean).sort((a, b) => b.sequence - a.sequence)[0];
      const same = known && known.sequence === of.sequence;
      if (known && (of.sequence < known.sequence || (same && !equal(known.digest, digest)))) {
        throw new DeviceError('rolled_back', `list ${of.sequence} must be the newest that was seen`);
      }
      if (of.expires_s - now_s > MAX_LIFE_S + SKEW_S) {
        throw new DeviceError('clock_not_trusted', `list ${of.sequence} must not live for over a year from now`);
      }
      const judged_s = same ? Math.max(now_s, known.judged_s, this.#lastAnswered()) : now_s;
      const over = judged_s >= of.expires_s;
      const ends = over ? [] : of.cancelled.map(hex).filter((each) => !lists.has(`cancelled ${each}`));
      /** @type {Change[]} */
      const changes = [];
      for (const each of ends) {
        const row = enrolments.get(each);
        changes.push(['lists', `cancelled ${each}`, true]);
        if (!row) continue;
        const step = /** @type {Step} */ ({ kind: 'cancel', digest: each });
        const place = 1 + changes.filter(([table]) => table === 'transcript').length;
        this.#account.take(step, this.#survey(each));
        changes.push(this.#step(step, place), ...this.#ended([[each, row]], 'cancelled'));
      }
      if (ends.length || !same || judged_s > known.judged_s) {
        changes.push(['lists', hex(key), { sequence: of.sequence, digest, judged_s }]);
      }
      return [changes, over];
    });
    if (expired) throw new DeviceError('expired', `list ${of.sequence} must not have expired`);
    return of.surveys;
  }

  /** Return when the latest answered round began: a moment that is over for sure. */
  #lastAnswered() {
    const begins = [...this.#ledger.tables.answers.values()].map(({ digest, round }) => {
      const { start_s, round_s } = this.#survey(digest);
      return start_s + round * round_s;
    });
    return begins.reduce((a, b) => Math.max(a, b), 0);
  }

  /** Take part in a survey, or say why not: its whole schedule is reserved, or nothing. @param {Survey} survey @returns {Promise<Enrolment>} */
  async #enrol(survey) {
    const digest = hex(survey.digest);
    const now_s = this.#now();
    const seed = survey.rotation > 1 ? this.#source.take(SEED_BYTES) : null;
    this.#surveys.set(digest, this.#surveys.get(digest) ?? survey);
    const own = this.#survey(digest);
    const reason = await this.#decide(() => {
      const { enrolments, attributes } = this.#ledger.tables;
      const known = enrolments.get(digest);
      if (known?.state === 'active') return [[], null];
      const why = this.#refusal(own, digest, now_s);
      if (why !== null || now_s === null) return [[], why];
      const last = Math.max(lastClosed(own, now_s), known?.last ?? -1);
      const pins = own.attributes.map(({ id }) => attributes.get(id).version);
      /** @param {number} slot */
      const unserved = (slot) => {
        const served = this.#account.served.get(`${digest} ${slot}`);
        return !served || (isStatic(own) && served.join() !== pins.join());
      };
      const row = { canonical: own.canonical, last, state: 'active', seed: known ? known.seed : seed, order: known?.order ?? enrolments.size };
      const all = slotsAfter(own, last, row.seed);
      const slots = all.filter(unserved);
      // What is reserved already needs no decision; any other is decided on for every seed alike.
      const most = slots.length < all.length ? slots.length : mostSlots(own, last);
      if (most > (this.#policy.maxSlots ?? MAX_SLOTS)) return [[], 'too_large'];
      const unfit = most > 0 ? this.#account.unfit(own, digest, most, pins) : null;
      if (unfit !== null) return [[], unfit];
      /** @type {Change[]} */
      const changes = [['enrolments', digest, row]];
      if (slots.length > 0) {
        const step = /** @type {Step} */ ({ kind: 'reserve', digest, slots, pins });
        if (!this.#account.take(step, own)) return [[], 'over_budget'];
        changes.push(this.#step(step));
      }
      return [changes, null];
    });
    const { id, version, title, epsilon } = own;
    return { digest, id, version, title, epsilon, status: reason === null ? 'enrolled' : 'refused', reason };
  }

  /** Return why a survey is refused before the budget is asked. @param {Survey} survey @param {string} digest @param {number | null} now_s */
  #refusal(survey, digest, now_s) {
    const { attributes, consents, lists } = this.#ledger.tables;
    const { maxEpsilon = this.#ledger.device.budget, attributes: allowed, requireOptIn = 'yes' } = this.#policy;
    if (lists.has(`cancelled ${digest}`)) return 'cancelled';
    if (now_s === null) return 'clock_not_trusted';
    if (!FORMS.includes(survey.asks)) return 'unknown_form';
    if (!survey.ledgers.includes('site-data')) return 'wrong_ledger';
    const rows = survey.attributes.map(({ id }) => attributes.get(id));
    if (rows.includes(undefined)) return 'unknown_attribute';
    if (rows.some(({ spec }, i) => told(attributeOf(spec)) !== told(survey.attributes[i]))) return 'domain_mismatch';
    if (!(Math.max(survey.epsilon, survey.certified) <= maxEpsilon)) return 'over_policy';
    if (now_s >= survey.start_s && roundAt(survey, now_s) === null) return 'expired';
    const ids = survey.attributes.map(({ id }) => id);
    if (allowed && !ids.every((id) => allowed.includes(id))) return 'not_allowed';
    const toSurvey = consents.get(subject(digest));
    const toAttributes = ids.map((id) => consents.get(subject(id)));
    if ([toSurvey, ...toAttributes].includes(false)) return 'opted_out';
    return requireOptIn === 'yes' && !toSurvey && !toAttributes.every(Boolean) ? 'not_opted_in' : null;
  }

  /** Return surveys whose round is open and not answered. @param {number} now_s @returns {[Survey, number, string][]} */
  #openRounds(now_s) {
    /** @type {[Survey, number, string][]} */
    const found = [];
    for (const [digest, row] of this.#ledger.tables.enrolments) {
      const survey = this.#survey(String(digest));
      const round = row.state === 'active' ? roundAt(survey, now_s) : null;
      if (round === null || round <= row.last || this.#ledger.tables.answers.has(`${digest} ${round}`)) continue;
      if (isDrawn(survey, round, row.seed)) found.push([survey, round, String(digest)]);
    }
    return found;
  }

  /**
   * Answer every survey whose round is open and not answered, each in one transaction; nothing is sent.
   *
   * A value that is not set is answered as missing: silence would tell it.
   *
   * @returns {Promise<{survey: string, digest: string, round: number, id: string}[]>} once they are on disk
   */
  async answer() {
    const found = [];
    for (;;) {
      const now_s = this.#now();
      const made = await this.#decide(/** @returns {[Change[], 'kept' | null | {survey: string, digest: string, round: number, isLast: boolean}]} */ () => {
        if (now_s === null || this.#ledger.device.paused) return [[], null];
        const past = this.#pastKept(now_s);
        if (past.length) return [past, 'kept'];
        const open = this.#openRounds(now_s);
        for (const [i, [survey, round, digest]] of open.entries()) {
          const changes = this.#answered(survey, round, digest, now_s);
          if (changes) return [changes, { survey: survey.id, digest, round, isLast: i + 1 === open.length }];
        }
        return [[], null];
      });
      if (made === null) return found;
      if (made === 'kept') continue;
      const { isLast, ...rest } = made;
      found.push({ ...rest, id: hex(this.#ledger.tables.answers.get(`${rest.digest} ${rest.round}`).id) });
      if (isLast) return found;
    }
  }

  /** Return the changes of one answer, null where nothing is reserved for it. @param {Survey} survey @param {number} round @param {string} digest @param {number} now_s @returns {Change[] | null} */
  #answered(survey, round, digest, now_s) {
    const { attributes, outbox } = this.#ledger.tables;
    const slot = isStatic(survey) ? MEMOISED : round;
    const own = `${digest} ${slot}`;
    const rows = survey.attributes.map(({ id }) => attributes.get(id));
    const pins = this.#account.served.get(own);
    if (!pins || (slot === MEMOISED && pins.join() !== rows.map(({ version }) => version).join())) return null;
    /** @type {Change[]} */
    const changes = [];
    let symbol = this.#account.recorded.get(own);
    if (symbol === undefined) {
      const values = survey.attributes.map((attribute, i) => (rows[i].memo ? rows[i].memo.value : (this.#value(attribute, rows[i], now_s) ?? null)));
      if (survey.form.lag) values.unshift(rows[0].past?.find((/** @type {Past} */ each) => each.digest === digest && each.round === round)?.value ?? null);
      symbol = survey.channel.draw(survey.input(values, this.#source), this.#source);
      const step = /** @type {Step} */ ({ kind: 'record', digest, slot, symbol });
      this.#account.take(step, survey);
      changes.push(this.#step(step));
      survey.attributes.forEach(({ id, kind }, i) => {
        if (kind === 'static' && !rows[i].memo) changes.push(['attributes', id, { ...rows[i], memo: { value: values[i] } }]);
      });
    }
    const id = this.#source.take(16);
    const report = writeReport({ identity: new Uint8Array([...survey.digest, ...id]), round, symbol });
    const last = /** @type {number} */ ([...outbox.keys()].at(-1) ?? 0);
    changes.push(['answers', `${digest} ${round}`, { digest, round, id, report, outcome: null }]);
    changes.push(['outbox', last + 1, { name: `${digest} ${round}`, report }]);
    // A value of now goes with the last round that waits for it.
    const waiting = this.#openRounds(now_s).filter(([other]) => other !== survey);
    survey.attributes.forEach(({ id: attribute }, i) => {
      const needed = waiting.some(([other]) => other.attributes.some((each) => each.id === attribute));
      const past = (rows[i].past ?? []).filter((/** @type {Past} */ each) => each.digest !== digest || each.round !== round);
      const isOver = rows[i].kept && !needed;
      if (isOver || past.length < (rows[i].past ?? []).length) {
        changes.push(['attributes', attribute, { ...rows[i], past, kept: isOver ? null : rows[i].kept }]);
      }
    });
    return changes;
  }

  /** Return whether a round will be answered: it is drawn, not answered, and not over. @param {string} digest @param {number} round @param {number} now_s */
  #waits(digest, round, now_s) {
    const { state, last, seed } = this.#ledger.tables.enrolments.get(digest);
    const survey = this.#survey(digest);
    const ahead = Math.max(lastClosed(survey, now_s), last) < round && round < survey.rounds;
    return state === 'active' && ahead && !this.#ledger.tables.answers.has(`${digest} ${round}`) && isDrawn(survey, round, seed);
  }

  /** Return the changes that keep values of now for transitions of a later round, once in each, and drop what none waits for. @param {number} now_s @returns {Change[]} */
  #pastKept(now_s) {
    const { attributes, enrolments } = this.#ledger.tables;
    return [...attributes].flatMap(([id, row]) => {
      const before = /** @type {Past[]} */ (row.past ?? []);
      const past = before.filter(({ digest, round }) => this.#waits(digest, round, now_s));
      const left = past.length;
      for (const digest of /** @type {Iterable<string>} */ (enrolments.keys())) {
        const survey = this.#survey(digest);
        const { lag } = survey.form;
        const current = lag && survey.attributes[0].id === id ? roundAt(survey, now_s) : null;
        const round = (current ?? 0) + (lag ?? 0);
        const value = this.#value(survey.attributes[0], row, now_s);
        if (current === null || value === undefined || !this.#waits(digest, round, now_s)) continue;
        if (!past.some((each) => each.digest === digest && each.round === round)) past.push({ digest, round, value });
      }
      const same = past.length === left && left === before.length;
      return same ? [] : [/** @type {Change} */ (['attributes', id, { ...row, past }])];
    });
  }

  /** Return the value that was set last, here or in another tab; undefined for none. @param {Attribute} attribute @param {any} row @param {number} now_s @returns {Kept | undefined} */
  #value({ id }, { kept }, now_s) {
    const here = this.#told.get(id);
    const there = kept && kept.since_s <= now_s && now_s < kept.until_s ? kept : null;
    if (here && (!there || here.since_s >= there.since_s)) return here.value;
    return there?.value;
  }

  /**
   * Send what waits, oldest first; a report leaves the outbox for a typed outcome alone.
   *
   * @returns {Promise<{settled: number, waiting: number, wait_s: number | null, failure: string | null}>}
   */
  async upload() {
    const until = performance.now() + 1000 * this.#limits.upload_s;
    return navigator.locks.request(`${this.#name} upload`, { ifAvailable: true }, async (lock) => {
      let settled = 0;
      let failure = lock ? null : 'another upload is under way';
      let wait_s = null;
      while (lock) {
        const now_s = this.#now();
        const { rows, backoff, paused } = await this.#read(() => {
          const { tables, device } = this.#ledger;
          return { rows: [...tables.outbox], backoff: device.backoff, paused: device.paused };
        });
        if (rows.length === 0) break;
        if (paused || now_s === null) {
          failure = paused ? 'paused' : 'clock not trusted';
          break;
        }
        const chosen = choose(rows, backoff, now_s, this.#limits);
        if (chosen.wait_s > 0 || performance.now() >= until) {
          wait_s = chosen.wait_s;
          break;
        }
        const answer = await this.#transport.post('/v1/reports', chosen.body).catch(() => null);
        const after = afterwards(chosen.rows.length, answer, backoff, this.#now() ?? now_s, this.#limits);
        failure = after.failure;
        await this.#settle(chosen.rows, after);
        settled += (after.outcomes ?? []).filter((outcome) => outcome !== 'early').length;
      }
      const waiting = await this.#read(() => this.#ledger.tables.outbox.size);
      return { settled, waiting, wait_s, failure };
    });
  }

  /** Write the outcomes of an upload. @param {[import('./ledger.js').Key, any][]} rows @param {ReturnType<typeof afterwards>} after */
  async #settle(rows, { outcomes, backoff }) {
    await this.#decide(() => {
      const { outbox, answers } = this.#ledger.tables;
      let last = /** @type {number} */ ([...outbox.keys()].at(-1) ?? 0);
      /** @type {Change[]} */
      const changes = [['device', 'device', { backoff }]];
      (outcomes ?? []).forEach((outcome, i) => {
        const [key, row] = rows[i];
        if (!outbox.has(key)) return; // withdrawn meanwhile
        changes.push(['outbox', key]);
        if (outcome === 'early') changes.push(['outbox', (last += 1), row]);
        else changes.push(['answers', row.name, { ...answers.get(row.name), outcome }]);
      });
      return [changes, null];
    });
  }

  /**
   * Return the owner's account: what was asked and sent, what it can reveal, and what is left.
   *
   * An answer that waits is not in it, and counts at its worst: who saw it could keep it back, and bias the survey.
   */
  async account() {
    return this.#read(() => {
      const { tables, device } = this.#ledger;
      const sent = [...tables.answers.values()].filter(({ outcome }) => outcome !== null && outcome !== 'withdrawn');
      const seen = new Set(sent.flatMap(({ digest, round }) => [`${digest} ${round}`, `${digest} ${MEMOISED}`]));
      // With what waits at its worst a later reservation may pass the budget: it was decided on without.
      const shown = this.#replayed(1000, (step) => step.kind !== 'record' || seen.has(`${step.digest} ${step.slot}`));
      const surveys = [...tables.enrolments].sort(([, a], [, b]) => a.order - b.order).map(([digest, { state }]) => {
        const { id, version, title, epsilon, rounds, attributes } = this.#survey(String(digest));
        const own = sent.filter((each) => each.digest === digest).length;
        return { digest: String(digest), id, version, title, epsilon, rounds, state, sent: own, attributes: attributes.map((each) => each.id) };
      });
      return {
        budget: device.budget,
        loss: shown.loss * UNIT,
        committed: Math.min(shown.committed * UNIT, device.budget),
        label: this.label,
        lists: this.#keys.length ? 'signed' : 'unverified',
        paused: device.paused,
        waiting: tables.outbox.size,
        surveys,
        refused: this.#asked.filter(({ reason }) => reason !== null),
        sent: sent.map(({ digest, round, report, outcome }) => ({ survey: this.#survey(digest).id, digest, round, report, outcome })),
      };
    });
  }

  /** Erase values, answers and what waits; surveys end, every yes is taken back, and what it all cost stays spent. */
  async forget() {
    await this.#decide(() => {
      const { tables } = this.#ledger;
      const closed = { loss: this.#account.loss, committed: this.#account.committed };
      this.#told.clear();
      /** @type {Change[]} */
      const changes = [['device', 'device', { closed }]];
      for (const table of ['transcript', 'answers', 'outbox']) {
        for (const key of tables[table].keys()) changes.push([table, key]);
      }
      for (const [key, yes] of tables.consents) if (yes) changes.push(['consents', key]);
      for (const [key, row] of tables.attributes) {
        changes.push(['attributes', key, { ...row, version: row.version + 1, memo: null, kept: null, past: [] }]);
      }
      for (const [key, row] of tables.enrolments) {
        const rounds = [...tables.answers.values()].filter(({ digest }) => digest === key).map(({ round }) => round);
        const last = rounds.reduce((a, b) => Math.max(a, b), row.last);
        changes.push(['enrolments', key, { ...row, last, state: row.state === 'active' ? 'left' : row.state }]);
      }
      this.#account = new Account(this.#ledger.device.budget, closed);
      return [changes, null];
    });
  }

  /** Give up the ledger. */
  close() {
    this.#ledger.close();
  }
}
