// node test/speed.js SURVEY...: microseconds of reading a survey, of a draw with its report, of a filter's step; JSON lines.
import { readFileSync } from 'node:fs';
import { Filter } from '../src/filter.js';
import { SystemBytes } from '../src/random.js';
import { Survey } from '../src/survey.js';
import { writeReport } from '../src/wire.js';

const SECONDS = 0.5;
const source = new SystemBytes();

/** Return the median microseconds of a call, over half a second. */
async function median(call) {
  for (let i = 0; i < 20; i++) await call();
  const took = [];
  for (const end = performance.now() + 1000 * SECONDS; performance.now() < end; ) {
    const from = performance.now();
    await call();
    took.push(1000 * (performance.now() - from));
  }
  return took.sort((a, b) => a - b)[took.length >> 1];
}

for (const path of process.argv.slice(2)) {
  const canonical = new Uint8Array(readFileSync(path));
  const survey = await Survey.read(canonical);
  const missing = new Array(survey.form.reads ?? survey.attributes.length).fill(null);
  const id = source.take(16);
  const identity = new Uint8Array([...survey.digest, ...id]);
  const row = {
    read: await median(() => Survey.read(canonical)),
    report: await median(() => {
      const symbol = survey.channel.draw(survey.input(missing, source), source);
      return writeReport({ identity, round: 3, symbol });
    }),
  };
  if (survey.asks !== 'score') {
    const keys = [...survey.form.cells().shape.keys()];
    row.filter = await median(() => {
      const filter = new Filter(100);
      filter.reserve([{ keys, survey }]);
      filter.record(0, survey.channel.draw(0, source));
    });
  }
  console.log(JSON.stringify(row));
}
