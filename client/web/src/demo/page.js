/**
 * The page demo.html: ten thousand devices answer before its reader's eyes, by the code that a browser's device runs.
 *
 * @module
 */

import { Survey } from '../survey.js';
import { answered, checks, counted, estimated, sealOf } from './round.js';

const DEVICES = 10_000;
const SECONDS = 5;
const STEP = 200;
/** Of the people that the page invents. */
const TRUTH = [0.34, 0.26, 0.2, 0.13, 0.07];

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

/** Return a place on a scale that ends at a half. @param {number} share */
function along(share) {
  return `${200 * Math.min(Math.max(share, 0), 0.5)}%`;
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

/** Return people who hold each value as often as the truth says, in random order. @param {string[]} labels */
function people(labels) {
  const found = labels.flatMap((label, i) => new Array(Math.round(TRUTH[i] * DEVICES)).fill(label));
  for (let i = found.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [found[i], found[j]] = [found[j], found[i]];
  }
  return found;
}

/** @param {Document} document @param {string} name @param {string} text @param {string} [kind] */
function made(document, name, text, kind = '') {
  const found = document.createElement(name);
  found.textContent = text;
  found.className = kind;
  return found;
}

/** Run the demo in a page, whose body has the survey. @param {Document} document */
export async function start(document) {
  /** @param {string} id */
  const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const canonical = Uint8Array.from(document.body.dataset.survey?.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const survey = await Survey.read(canonical);
  const { domain } = survey.attributes[0];
  const labels = domain.type === 'label' ? domain.labels : [];
  const rows = labels.map((label, i) => {
    const row = made(document, 'tr', '');
    const head = made(document, 'th', label);
    head.setAttribute('scope', 'row');
    const plot = made(document, 'td', '', 'plot');
    for (const kind of ['bar', 'interval', 'truth']) plot.append(made(document, 'span', '', kind));
    /** @type {HTMLElement} */ (plot.lastElementChild).style.left = along(TRUTH[i]);
    row.append(head, plot, made(document, 'td', '–', 'share'), made(document, 'td', '', 'margin'));
    return row;
  });
  at('shares').append(...rows);
  /** @param {import('./round.js').Estimates} estimates */
  function show({ shares, errors }) {
    rows.forEach((row, i) => {
      const [bar, interval] = /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll('span'));
      const margin = 1.96 * errors[i];
      bar.style.width = along(shares[i]);
      interval.style.left = along(shares[i] - margin);
      interval.style.right = `calc(100% - ${along(shares[i] + margin)})`;
      row.children[2].textContent = percent(shares[i]);
      row.children[3].textContent = `± ${(100 * margin).toFixed(1)}`;
    });
  }

  const held = people(labels);
  /** @type {Uint8Array[]} */
  const reports = [];
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const began = performance.now();
  const turn = () => new Promise((next) => setTimeout(next, 0));
  while (reports.length < DEVICES) {
    const to = reports.length + STEP;
    while (reports.length < to) reports.push(answered(survey, held[reports.length]));
    const last = reports[to - 1];
    at('holds').textContent = held[to - 1];
    at('sends').textContent = labels[last[last.length - 1]] ?? 'missing';
    at('bytes').textContent = hex(last);
    at('count').textContent = to.toLocaleString('en');
    at('progress').style.width = `${(100 * to) / DEVICES}%`;
    show(estimated(survey, counted(survey, reports)));
    await turn();
    const due = (1000 * SECONDS * to) / DEVICES;
    if (!calm && performance.now() - began < due) await new Promise((next) => setTimeout(next, due - (performance.now() - began)));
  }

  const counts = counted(survey, reports);
  const estimates = estimated(survey, counts);
  const seal = await sealOf(survey, counts, estimates);
  at('seal').textContent = seal;
  for (const { says, holds } of await checks(canonical, reports, counts, estimates, seal)) {
    at('checks').append(made(document, 'li', says, holds ? 'right' : 'wrong'));
  }
  at('took').textContent = ((performance.now() - began) / 1000).toFixed(1);
  at('done').hidden = false;
  at('state').textContent = 'The round is over, sealed and checked.';

  const pick = /** @type {HTMLSelectElement} */ (at('pick'));
  pick.append(...labels.map((label) => made(document, 'option', label)));
  at('send').addEventListener('click', () => {
    const sent = Array.from({ length: 12 }, () => answered(survey, pick.value).at(-1) ?? 0);
    at('yours').textContent = sent.map((symbol) => labels[symbol] ?? 'missing').join(', ');
  });
  document.body.dataset.done = 'yes';
}
