/**
 * The page verify.html: files or a server's address in, what was checked of them out. It asks that server alone.
 *
 * @module
 */

import { Refused, array, read, text } from '../msgpack.js';
import { Survey } from '../survey.js';
import { hex } from './counts.js';
import { readKey, readLog } from './log.js';
import { METHODS, checkRelease } from './release.js';

/** What is in a file, or at an address. @typedef {{name: string, data: Uint8Array}} Given */
/** @typedef {import('./log.js').SeenLog} SeenLog */

const SHOWN = 20;
/** The number of a key's kind in a signed note. */
const [LOG, WITNESS] = [1, 4];

/** Return what is in a file: a survey, counts, or a release. @param {Given} given */
async function readFile({ name, data }) {
  if (data[0] === 0x7b) {
    const document = JSON.parse(new TextDecoder().decode(data));
    if (document.sealed === undefined || typeof document.survey !== 'object') throw new Refused('no release');
    return { name, data, document };
  }
  const kind = text(array(read(data))[0]);
  if (kind === 'hubbub-survey') return { name, survey: await Survey.read(data) };
  if (kind === 'hubbub-counts') return { name, counts: data };
  throw new Refused('neither survey nor counts');
}

/** @param {unknown} value */
function told(value) {
  const words = typeof value === 'string' ? value : JSON.stringify(value);
  return words !== undefined && words.length > 200 ? `${words.slice(0, 200)} ...` : words;
}

/**
 * Return what is said of some files: a verdict for each release, and what could not be read.
 *
 * @param {Given[]} files
 * @param {SeenLog | null} log where the releases should be entered; null if nobody asks
 * @returns {Promise<{name: string, verdict: 'right' | 'differs' | 'unknown', lines: string[]}[]>}
 */
export async function verdicts(files, log = null) {
  const found = [];
  for (const fault of log?.faults ?? []) found.push({ name: 'the log', verdict: /** @type {const} */ ('differs'), lines: [fault] });
  /** @type {Map<string, Survey>} */
  const surveys = new Map();
  /** @type {Map<string, Uint8Array>} */
  const counts = new Map();
  const releases = [];
  for (const file of files) {
    try {
      const given = await readFile(file);
      if (given.survey) surveys.set(hex(given.survey.digest), given.survey);
      else if (given.counts) {
        const hash = await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (given.counts));
        counts.set(hex(new Uint8Array(hash)), given.counts);
      } else releases.push(given);
    } catch (error) {
      found.push({ name: file.name, verdict: /** @type {const} */ ('unknown'), lines: [`cannot be read: ${error}`] });
    }
  }
  for (const { name, data: bytes, document } of releases) {
    const survey = surveys.get(document.survey.digest);
    const isHidden = document.suppressed === true && !document.counts;
    // The file of other counts is a lie to be told, where there is no choice.
    const other = counts.size === 1 ? [...counts.values()][0] : undefined;
    const data = isHidden ? null : counts.get(document.counts?.sha256) ?? other;
    let missing = null;
    if (!METHODS.includes(document.method)) missing = `it is of method ${told(document.method)}, and this checker knows ${METHODS}`;
    else if (!isHidden && !document.counts) missing = 'it has no public counts';
    else if (survey === undefined) missing = `its survey ${told(document.survey.digest)} is not among the files`;
    else if (data === undefined) missing = `its counts ${told(document.counts.sha256)} are not among the files`;
    if (missing !== null || survey === undefined || data === undefined) {
      found.push({ name, verdict: /** @type {const} */ ('unknown'), lines: [`cannot be checked: ${missing}`] });
      continue;
    }
    let checked;
    try {
      checked = await checkRelease(survey, document, data);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      found.push({ name, verdict: /** @type {const} */ ('unknown'), lines: [`cannot be checked: ${error.message}`] });
      continue;
    }
    const wrong = checked.differences;
    const entered = await log?.about(survey.digest, document.round, bytes, document.accounting.accepted);
    const lines = [
      `${survey.title} (${survey.id}), round ${told(document.round)}: ${checked.exact} facts and ${checked.within} numbers are right, ${wrong.length} differ`,
      ...wrong.slice(0, SHOWN).map(({ path, said, found: due }) => `${path} is ${told(said)}, should be ${told(due)}`),
      ...(wrong.length > SHOWN ? [`and ${wrong.length - SHOWN} more`] : []),
      isHidden ? 'too few devices, no numbers to check' : `not checked: ${checked.unchecked.join(', ') || 'nothing'}`,
    ];
    if (entered) lines.push(entered.words);
    found.push({ name, verdict: wrong.length || entered?.isRight === false ? /** @type {const} */ ('differs') : /** @type {const} */ ('right'), lines });
  }
  return found;
}

/**
 * Return the surveys, the sealed releases and their counts of a server.
 *
 * @param {string} base its address, without a slash at the end
 * @returns {Promise<Given[]>}
 */
async function published(base) {
  /** @type {Given[]} */
  const found = [];
  /** @param {string} path */
  const add = async (path) => {
    const response = await fetch(`${base}${path}`);
    if (response.ok) found.push({ name: path.slice(API.length), data: new Uint8Array(await response.arrayBuffer()) });
    return response.ok;
  };
  for await (const { digest } of listed(base, `${API}/surveys`, 'surveys')) {
    const survey = `${API}/surveys/${digest}`;
    await add(`${survey}/canonical`);
    for await (const { round } of listed(base, `${survey}/rounds`, 'rounds', '&sealed=true')) {
      // Too few devices leave a release without counts.
      if (await add(`${survey}/rounds/${round}/sealed`)) await add(`${survey}/rounds/${round}/counts`);
    }
  }
  return found;
}

const API = '/api/v1';

/** Yield the lines of a list that comes in pages. @param {string} base @param {string} path @param {string} key @param {string} more */
async function* listed(base, path, key, more = '') {
  for (let next = /** @type {string | null} */ (`?limit=1000${more}`); next !== null; ) {
    const response = await fetch(`${base}${path}${next}`);
    if (!response.ok) throw new Error(`${base}${path} answered ${response.status}`);
    const page = await response.json();
    yield* page[key];
    next = page.next;
  }
}

/** @typedef {Awaited<ReturnType<verdicts>>} Found */

/** Return what is said of a server, and of its log where a key is given. @param {string} base @param {string} key @param {string} witnesses @returns {Promise<Found>} */
async function ofServer(base, key, witnesses) {
  const given = await published(base);
  if (!key.trim()) return verdicts(given);
  const own = await readKey(key, LOG);
  const known = await Promise.all(witnesses.split(/\s+/).filter(Boolean).map((each) => readKey(each, WITNESS)));
  /** @param {string} path */
  const get = async (path) => {
    const response = await fetch(`${base}/log/${path}`);
    if (!response.ok) throw new Error(`${base}/log/${path} answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  };
  try {
    return await verdicts(given, await readLog(get, own, known));
  } catch (error) {
    const verdict = error instanceof Refused ? /** @type {const} */ ('differs') : /** @type {const} */ ('unknown');
    return [{ name: 'the log', verdict, lines: [String(error)] }, ...(await verdicts(given))];
  }
}

const WORDS = { right: 'What was checked is right', differs: 'It differs', unknown: 'Not known' };

/** Check files that are picked or dropped on a page, and a server that it is given the address of. @param {Document} page */
export function start(page) {
  const results = /** @type {HTMLElement} */ (page.getElementById('results'));
  /** @param {() => Promise<Found>} work */
  const show = async (work) => {
    results.textContent = 'Checking ...';
    delete results.dataset.done;
    let found;
    try {
      found = await work();
    } catch (error) {
      found = [{ name: 'the server', verdict: /** @type {const} */ ('unknown'), lines: [String(error)] }];
    }
    results.replaceChildren(...found.map(({ name, verdict, lines }) => {
      const section = page.createElement('section');
      section.className = verdict;
      const title = page.createElement('h2');
      title.textContent = `${name}: ${WORDS[verdict]}`;
      section.append(title, ...lines.map((line) => {
        const paragraph = page.createElement('p');
        paragraph.textContent = line;
        return paragraph;
      }));
      return section;
    }));
    if (!found.length) results.textContent = 'There is no release.';
    results.dataset.done = String(found.length);
  };
  /** @param {Iterable<File>} files */
  const take = (files) => show(async () => {
    const read = [...files].map(async (file) => ({ name: file.name, data: new Uint8Array(await file.arrayBuffer()) }));
    return verdicts(await Promise.all(read));
  });
  for (const id of ['files', 'folder']) {
    const input = /** @type {HTMLInputElement} */ (page.getElementById(id));
    input.addEventListener('change', () => void take(input.files ?? []));
  }
  page.addEventListener('dragover', (event) => event.preventDefault());
  page.addEventListener('drop', (event) => {
    event.preventDefault();
    void take(event.dataTransfer?.files ?? []);
  });
  const form = /** @type {HTMLFormElement} */ (page.getElementById('ask'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const [server, key, witnesses] = ['server', 'key', 'witnesses'].map((name) => String(new FormData(form).get(name)));
    const base = server.trim().replace(/\/+$/, '');
    void show(() => ofServer(base, key, witnesses));
  });
}
