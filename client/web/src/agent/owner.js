/**
 * The owner's page, an element that a host places: what this device was asked, what it said and gave away.
 *
 *     const page = document.createElement('hubbub-owner');
 *     page.agent = agent;
 *     document.body.append(page);
 *
 * It says "change" once its owner has changed something. Numbers that bound something are rounded up.
 *
 * @module
 */

import { hex } from './schedule.js';

/** @typedef {import('./agent.js').Agent} Agent */
/** @typedef {Awaited<ReturnType<Agent['account']>>} Told */

const STYLE = `
:host { --card: light-dark(#fff, #181d24); --sunk: light-dark(#f3f2ed, #1f252e); --ink: light-dark(#1a212b, #e9ecf1);
  --muted: light-dark(#5a6371, #a3adba); --line: light-dark(#e2dfd7, #2c343f); --accent: light-dark(#0b6e69, #63cbc0);
  --bad: light-dark(#a5242b, #ff9b94); display: block; color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
* { box-sizing: border-box; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1rem; margin: 0 0 1rem; }
h2, h3 { font-size: 1.15rem; line-height: 1.3; margin: 0; } h3 { font-size: 1rem; }
p { margin: .4rem 0; } .main { font-size: 1.1rem; } .note, dt { color: var(--muted); font-size: .875rem; }
article { border-top: 1px solid var(--line); padding: .7rem 0; }
dl { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .8rem 0; } dd { margin: 0; font-size: 1.3rem; font-weight: 600; }
pre { font: .8125rem/1.5 ui-monospace, Menlo, monospace; white-space: pre-wrap; background: var(--sunk);
  border-radius: 8px; padding: .6rem; margin: .4rem 0; }
summary { cursor: pointer; color: var(--accent); padding: .3rem 0; }
button { font: inherit; color: var(--ink); background: var(--sunk); border: 1px solid var(--line); border-radius: 10px;
  padding: .5rem 1rem; min-height: 2.75rem; margin: .3rem .5rem .3rem 0; cursor: pointer; }
.danger { color: var(--bad); } label { display: block; padding: .5rem 0; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; } #state { outline: 0; }`;

/** Why a survey was refused, in words. @type {Record<string, string>} */
const REFUSALS = {
  unknown_attribute: 'it asks for what this site does not hold',
  domain_mismatch: 'it asks for other values than this site declared',
  over_policy: 'one answer would cost more than this site allows',
  too_large: 'it asks more often, or is larger, than this site allows',
  not_allowed: 'this site does not let anybody ask for that',
  not_opted_in: 'you have not said yes to it',
  opted_out: 'you said no to it',
  cancelled: 'it was cancelled for good',
  expired: 'its last round was over',
  clock_not_trusted: 'the device did not know what time it is',
  wrong_ledger: 'it does not ask browsers',
  unknown_form: 'it asks in a way that browsers do not answer',
  over_budget: 'it does not fit what is left of the budget',
};
const STATES = { active: 'taking part', left: 'left', cancelled: 'cancelled for good' };
const LABELS = {
  'per-site-data': 'This account lives as long as the data of this site. If they are cleared another begins, and both add up for whoever links them.',
  persisted: 'The browser has promised to keep this account until you clear the data of this site. Then another begins, and both add up for whoever links them.',
};

/** Return e^loss, rounded up. @param {number} loss */
export function factor(loss) {
  const value = Math.exp(Math.min(loss, 700));
  if (value < 100) return (Math.ceil(value * 100 - 1e-9) / 100).toFixed(2);
  const step = 10 ** (Math.floor(Math.log10(value)) - 2);
  return String(Math.ceil(value / step) * step);
}

/** @param {number} loss */
function up(loss) {
  return (Math.ceil(loss * 1000 - 1e-6) / 1000).toFixed(3);
}

/** Return sentences on what a loss can have told. @param {number} loss */
export function learned(loss) {
  if (loss <= 0) return ['From everything this device ever answered, nobody has learned anything.'];
  const share = 100 / (1 + Math.exp(-loss));
  const sure = share > 99.99 ? 'almost certain' : `${Math.min(Math.ceil(share * 100) / 100, 99.99)} % sure`;
  return [
    `From everything this device ever answered, the odds between any two things about you change by a factor of at most ${factor(loss)}.`,
    `Somebody who thought it even can now be at most ${sure}. This holds for everybody who sees all answers together, for good.`,
  ];
}

/** Return an element. @param {string} name @param {(Node | string)[]} inside @param {Record<string, string>} [given] */
function made(name, inside, given = {}) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(given)) found.setAttribute(key, value);
  found.append(...inside);
  return found;
}

export class OwnerPage extends HTMLElement {
  /** @type {Agent | null} */
  #agent = null;
  #root = this.attachShadow({ mode: 'open' });
  #says = '';

  constructor() {
    super();
    // A sheet, not an element: a strict policy lets it through.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    this.#root.adoptedStyleSheets = [sheet];
  }

  /** The agent whose account is shown. @param {Agent | null} agent */
  set agent(agent) {
    this.#agent = agent;
    void this.show();
  }

  get agent() {
    return this.#agent;
  }

  /** Show the account anew: after the host has answered or sent. */
  async show() {
    if (this.#agent === null) return;
    const told = await this.#agent.account();
    const focused = this.#root.activeElement?.id;
    const open = [...this.#root.querySelectorAll('details[open]')].map(({ id }) => id);
    const { checked } = this.#root.querySelector('input') ?? {};
    this.#root.replaceChildren(this.#learned(told), this.#surveys(told), this.#forgetting(told));
    for (const id of open) this.#root.getElementById(id)?.setAttribute('open', '');
    /** @type {HTMLInputElement} */ (this.#root.querySelector('input')).checked = checked === true;
    if (focused) (this.#root.getElementById(focused) ?? this.#root.getElementById('state'))?.focus();
  }

  /** Return a button that changes something, and shows what came of it. @param {string} id @param {string} says @param {(agent: Agent) => Promise<unknown>} change @param {string} [kind] */
  #button(id, says, change, kind = '') {
    const button = made('button', [says], { id, type: 'button', class: kind });
    button.addEventListener('click', async () => {
      try {
        await change(/** @type {Agent} */ (this.#agent));
        this.#says = '';
      } catch (error) {
        this.#says = `That did not work: ${error instanceof Error ? error.message : error}.`;
      }
      await this.show();
      if (!this.#says) this.dispatchEvent(new Event('change'));
    });
    return button;
  }

  /** @param {Told} told */
  #learned({ loss, committed, budget, label, lists, paused, waiting }) {
    const facts = { spent: up(loss), 'reserved for what you joined': up(committed - loss), left: (Math.floor((budget - committed) * 1000 + 1e-6) / 1000).toFixed(3), 'budget for life': String(budget) };
    const waits = waiting === 1 ? '1 answer waits' : `${waiting} answers wait`;
    const [main, ...rest] = learned(loss);
    const says = paused ? 'Paused: nothing is answered, nothing is sent.' : 'Surveys that you joined are answered when they ask.';
    return made('section', [
      made('h2', ['What anybody can have learned']),
      made('p', [main], { class: 'main' }),
      made('p', rest),
      made('dl', Object.entries(facts).map(([name, value]) => made('div', [made('dt', [name]), made('dd', [value])]))),
      ...(waiting ? [made('p', [`${waits} to be sent and will be shown then. Until then it counts at its worst.`])] : []),
      made('p', [LABELS[label], lists === 'signed' ? '' : ' No key was given, so whoever runs the collector chooses the surveys.'], { class: 'note' }),
      made('p', [says, this.#says && ` ${this.#says}`], { id: 'state', role: 'status', tabindex: '-1' }),
      this.#button('pause', paused ? 'Resume' : 'Pause', (agent) => agent.pause(!paused)),
    ]);
  }

  /** @param {Told} told */
  #surveys({ surveys, refused, sent }) {
    const known = new Set(surveys.map(({ digest }) => digest));
    /** @param {string} digest */
    const join = (digest) =>
      this.#button(`join-${digest}`, 'Take part', async (agent) => {
        await agent.optIn(digest);
        await agent.refresh();
      });
    const joined = surveys.map(({ digest, id, version, title, epsilon, rounds, state, sent: many, attributes }) => {
      const own = sent.filter((each) => each.digest === digest).slice(-100).reverse();
      const bytes = own.map(({ round, report, outcome }) => made('div', [
        made('p', [`Round ${round + 1}: ${outcome}`], { class: 'note' }), made('pre', [hex(report)]),
      ]));
      return made('article', [
        made('h3', [title]),
        made('p', [`${id}, version ${version}: ${STATES[/** @type {'active'} */ (state)]}`], { class: 'note' }),
        made('p', [`Asks for ${attributes.join(', ')}; one answer loses at most ${up(epsilon)}. ${many} sent in ${rounds} rounds.`]),
        ...(own.length ? [made('details', [made('summary', [`The exact bytes (${own.length})`]), ...bytes], { id: `sent-${digest}` })] : []),
        ...(state === 'active' ? [this.#button(`leave-${digest}`, 'Leave this survey', (agent) => agent.leave(digest))] : []),
        ...(state === 'left' ? [join(digest)] : []),
      ], { 'data-survey': id });
    });
    const others = refused.filter(({ digest }) => !known.has(digest)).map(({ digest, id, version, title, epsilon, reason }) =>
      made('article', [
        made('h3', [title]),
        made('p', [`${id}, version ${version}: not answered, because ${REFUSALS[reason ?? ''] ?? reason}. One answer loses at most ${up(epsilon)}.`]),
        ...(reason === 'not_opted_in' || reason === 'opted_out' ? [join(digest)] : []),
      ], { 'data-survey': id }));
    const none = [...joined, ...others].length ? [] : [made('p', ['Nobody asks for anything.'])];
    return made('section', [made('h2', ['Surveys']), ...joined, ...others, ...none]);
  }

  /** @param {Told} told */
  #forgetting({ committed, budget }) {
    const sure = made('input', [], { type: 'checkbox', id: 'sure' });
    return made('section', [
      made('h2', ['Forget']),
      made('p', [`Erases every value, every answer and all that waits in this browser, ends every survey and takes back every yes. It cannot recall what was sent, and it never renews the budget: ${up(committed)} of ${budget} stay spent.`]),
      made('label', [sure, ' I want that']),
      this.#button('forget', 'Forget everything', async (agent) => {
        if (!(/** @type {HTMLInputElement} */ (sure).checked)) throw new Error('tick "I want that" first');
        await agent.forget();
        /** @type {HTMLInputElement} */ (sure).checked = false;
      }, 'danger'),
    ]);
  }
}

customElements.define('hubbub-owner', OwnerPage);
