// node test/release-cli.js < cases: for each release the result of docs/conformance.md, and what was not checked.
import { createInterface } from 'node:readline';
import { Survey } from '../src/survey.js';
import { checkRelease } from '../src/verify/release.js';

/** @param {string} text */
function unhex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

for await (const line of createInterface({ input: process.stdin })) {
  const [, canonical, counts, release] = line.split('\t').map(unhex);
  const document = JSON.parse(new TextDecoder().decode(release));
  const { differences, unchecked } = await checkRelease(await Survey.read(canonical), document, counts);
  console.log(`${differences.length ? `differs ${differences[0].path}` : 'same'}\t${unchecked.join(', ')}`);
}
