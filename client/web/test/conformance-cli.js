// node test/conformance-cli.js < cases: their words, a line each.
import { createInterface } from 'node:readline';
import { result } from './conformance.js';

for await (const line of createInterface({ input: process.stdin })) {
  console.log(await result(line));
}
