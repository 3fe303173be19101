// How long an answer takes to be on disk, beside strict transactions that write nothing or one number, in one page.
import { ATTRIBUTES, opened } from './page-device.js';

const DAY_S = 86_400;

/** Return what a call took, in milliseconds. */
async function took(call) {
  const from = performance.now();
  await call();
  return performance.now() - from;
}

/** Run a strict transaction over as many tables as a ledger has. */
function transaction(database, work) {
  return new Promise((resolve, reject) => {
    const found = database.transaction([...database.objectStoreNames], 'readwrite', { durability: 'strict' });
    found.oncomplete = resolve;
    found.onabort = () => reject(found.error);
    work(found);
  });
}

/** Return milliseconds of every repetition, the three kinds taking turns. */
export async function compared({ start, repetitions, budget }) {
  let now = start + 1;
  const agent = await opened({ budget, clock: () => now });
  await agent.refresh();
  const database = await new Promise((resolve) => {
    const request = indexedDB.open('empty', 1);
    request.onupgradeneeded = () => [...Array(8).keys()].forEach((i) => request.result.createObjectStore(`t${i}`));
    request.onsuccess = () => resolve(request.result);
  });
  const found = { empty: [], put: [], answer: [] };
  for (let i = 0; i < repetitions; i++) {
    await agent.set('health', ATTRIBUTES[0].domain[i % 4]);
    found.empty.push(await took(() => transaction(database, () => {})));
    found.put.push(await took(() => transaction(database, (open) => open.objectStore('t0').put(i, 'n'))));
    const made = [];
    found.answer.push(await took(async () => made.push(...(await agent.answer()))));
    if (made.length !== 1) throw new Error('one answer a round');
    now += DAY_S;
  }
  return found;
}
