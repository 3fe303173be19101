// The metrics of the server that this page comes from, in Prometheus' text form: read while somebody looks at operations.

const EVERY_MS = 5000;
const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export class Metrics {
  constructor(onArrival) {
    this.onArrival = onArrival;
    this.families = null; // name -> [{labels, value}]; null: not read yet, or out of reach
    this.failed = false;
    this.readAt = -Infinity;
    this.asking = false;
  }

  // Reads them again if the last reading is old; call as often as you like.
  async refresh() {
    if (this.asking || performance.now() - this.readAt < EVERY_MS) return;
    this.asking = true;
    try {
      const response = await fetch("metrics", { cache: "no-store", signal: AbortSignal.timeout(10_000) });
      if (!response.ok) throw new Error(`status ${response.status}`);
      [this.families, this.failed] = [parse(await response.text()), false];
    } catch {
      [this.families, this.failed] = [null, true];
    }
    this.readAt = performance.now();
    this.asking = false;
    this.onArrival();
  }

  // Numbers of a family by one label: a Map, empty where there is no such family.
  by(name, label) {
    return new Map((this.families?.get(name) ?? []).map(({ labels, value }) => [labels[label], value]));
  }

  // A family's single number, or null.
  of(name) {
    return this.families?.get(name)?.[0]?.value ?? null;
  }
}

export function parse(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    const found = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (!found) continue;
    const labels = Object.fromEntries([...(found[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name, value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c))]));
    if (!families.has(found[1])) families.set(found[1], []);
    families.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return families;
}
