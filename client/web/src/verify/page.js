/**
 * The page verify.html: files in, what was checked of them out. It asks no network.
 *
 * @module
 */

import { Refused, array, read, text } from '../msgpack.js';
import { Survey } from '../survey.js';
import { METHODS, checkRelease } from './release.js';

/** @typedef {{name: string, data: Uint8Array}} Given */

const SHOWN = 20;

/** Return what is in a file: a survey, counts, or a release. @param {Given} given */
async function readFile({ name, data }) {
  if (data[0] === 0x7b) {
    const document = JSON.parse(new TextDecoder().decode(data));
    if (document.sealed === undefined || typeof document.survey !== 'object') throw new Refused('no release');
    return { name, document };
  }
  const kind = text(array(read(data))[0]);
  if (kind === 'hubbub-survey') return { name, survey: await Survey.read(data) };
  if (kind === 'hubbub-counts') return { name, counts: data };
  throw new Refused('neither survey nor counts');
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
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
 * @returns {Promise<{name: string, verdict: 'right' | 'differs' | 'unknown', lines: string[]}[]>}
 */
export async function verdicts(files) {
  const found = [];
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
  for (const { name, document } of releases) {
    const survey = surveys.get(document.survey.digest);
    // The file of other counts is a lie to be told, where there is no choice.
    const data = counts.get(document.counts?.sha256) ?? (counts.size === 1 ? [...counts.values()][0] : undefined);
    let missing = null;
    if (!METHODS.includes(document.method)) missing = `it is of method ${told(document.method)}, and this checker knows ${METHODS}`;
    else if (document.counts === undefined || document.counts === null) missing = 'it has no public counts';
    else if (survey === undefined) missing = `its survey ${told(document.survey.digest)} is not among the files`;
    else if (data === undefined) missing = `its counts ${told(document.counts.sha256)} are not among the files`;
    if (missing !== null || survey === undefined || data === undefined) {
      found.push({ name, verdict: /** @type {const} */ ('unknown'), lines: [`cannot be checked: ${missing}`] });
      continue;
    }
    const checked = await checkRelease(survey, document, data);
    const wrong = checked.differences;
    const lines = [
      `${survey.title} (${survey.id}), round ${told(document.round)}: ${checked.exact} facts and ${checked.within} numbers are right, ${wrong.length} differ`,
      ...wrong.slice(0, SHOWN).map(({ path, said, found: due }) => `${path} is ${told(said)}, should be ${told(due)}`),
      ...(wrong.length > SHOWN ? [`and ${wrong.length - SHOWN} more`] : []),
      `not checked: ${checked.unchecked.join(', ') || 'nothing'}`,
    ];
    found.push({ name, verdict: wrong.length ? /** @type {const} */ ('differs') : /** @type {const} */ ('right'), lines });
  }
  return found;
}

const WORDS = { right: 'What was checked is right', differs: 'It differs', unknown: 'Not known' };

/** Take files that are picked or dropped on a page with #files, #folder and #results. @param {Document} page */
export function start(page) {
  const results = /** @type {HTMLElement} */ (page.getElementById('results'));
  /** @param {Iterable<File>} files */
  const take = async (files) => {
    results.textContent = 'Checking ...';
    const given = await Promise.all(
      [...files].map(async (file) => ({ name: file.name, data: new Uint8Array(await file.arrayBuffer()) })),
    );
    const found = await verdicts(given);
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
    if (!found.length) results.textContent = 'No release is among the files.';
    results.dataset.done = String(found.length);
  };
  for (const id of ['files', 'folder']) {
    const input = /** @type {HTMLInputElement} */ (page.getElementById(id));
    input.addEventListener('change', () => void take(input.files ?? []));
  }
  page.addEventListener('dragover', (event) => event.preventDefault());
  page.addEventListener('drop', (event) => {
    event.preventDefault();
    void take(event.dataTransfer?.files ?? []);
  });
}
