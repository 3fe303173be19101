// A device in a page, for tests: it goes through the rounds of what its own server asks, and says what it has done.
import { openAgent } from '../src/agent/agent.js';
import { hex } from '../src/agent/schedule.js';
import { transportTo } from '../src/agent/transport.js';

export const ATTRIBUTES = [
  { id: 'health', kind: 'evolving', type: 'label', domain: ['excellent', 'good', 'fair', 'poor'] },
  { id: 'age', kind: 'static', type: 'integer', domain: [10, 19] },
  { id: 'sex', kind: 'static', type: 'label', domain: ['f', 'm'] },
];

/** Return an agent whose owner has agreed, of this page's own server. */
export function opened(settings) {
  return openAgent({
    collector: new URL(document.baseURI).origin, attributes: ATTRIBUTES, policy: { requireOptIn: 'no' }, limits: { gap_s: 0 }, ...settings,
  });
}

function tell(words) {
  return fetch('/told', { method: 'POST', body: JSON.stringify(words) });
}

/** Wait until so many pages of this origin are here, by messages alone: a hidden page's timers are slow. */
function gathered(pages) {
  const channel = new BroadcastChannel('here');
  const own = crypto.randomUUID();
  const seen = new Set([own]);
  return new Promise((next) => {
    channel.onmessage = ({ data }) => {
      // Whoever hears of a new page says once more that it is here itself.
      if (!seen.has(data)) channel.postMessage(own);
      if (seen.add(data).size >= pages) next();
    };
    channel.postMessage(own);
    if (pages <= 1) next();
  });
}

/** Go through rounds, tell the server of every answer once it is made, and upload every eighth round. */
export async function live({ start, length, budget, from, to, name = '', pages = 1 }) {
  let round = from;
  const agent = await opened({ budget, clock: () => start + round * length + 1 });
  await agent.refresh();
  await agent.set('age', 13);
  await gathered(pages);
  for (; round < to; round++) {
    await agent.set('health', ATTRIBUTES[0].domain[round % 4]);
    const made = await agent.answer();
    await tell({ name, round, made });
    if (round % 8 === 0) await agent.upload();
  }
  while ((await agent.upload()).waiting > 0) await new Promise((next) => setTimeout(next, 5));
  const { loss, committed, sent } = await agent.account();
  await tell({ name, done: true, loss, committed, sent: sent.map((each) => hex(each.report)) });
}

/** Let devices of this page answer a node of another origin, a database each, twenty at a time; return what became of them. */
export async function crowd({ node, devices, start }) {
  const labels = ATTRIBUTES[0].domain;
  const told = { accepted: 0, failures: [] };
  async function one(i) {
    const collector = `${node}/?device=${i}`;
    const agent = await opened({ collector, transport: transportTo(node), budget: 4, clock: () => start + 7200 });
    await agent.refresh();
    await agent.set('health', labels[i % 4]);
    await agent.answer();
    const { failure } = await agent.upload();
    if (failure) told.failures.push(failure);
    const { sent } = await agent.account();
    told.accepted += sent.filter(({ outcome }) => outcome === 'accepted').length;
    agent.close();
  }
  for (let i = 0; i < devices; i += 20) {
    await Promise.all(Array.from({ length: Math.min(20, devices - i) }, (_, j) => one(i + j)));
  }
  return told;
}

if (location.search) {
  const given = Object.fromEntries(new URLSearchParams(location.search));
  const read = (value) => (value !== '' && Number.isFinite(Number(value)) ? Number(value) : value);
  live(Object.fromEntries(Object.entries(given).map(([key, value]) => [key, read(value)]))).catch((error) =>
    tell({ failed: `${error} ${error.stack}` }),
  );
}
