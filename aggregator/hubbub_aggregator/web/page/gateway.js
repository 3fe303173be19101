// What the gateway of this server took, refused and wrote since it began: of a node, by its metrics. A dashboard of a cluster
// has no gateway, and says where those numbers are.

import { el, setText, show } from "./dom.js";
import { count, fixed } from "./format.js";
import { TextTable } from "./texttable.js";

const OUTCOMES = {
  accepted: "Taken, and in the log.",
  unknown: "A digest that this server's surveys do not have.",
  invalid: "No report of its survey.",
  early: "For a round that has not begun.",
  late: "After its round and its lateness.",
  over_quota: "More than one round's quota of reports.",
};
const STATUSES = {
  200: "Answered, report by report.", 400: "No upload.", 403: "Out of a browser.", 408: "Its body came too slowly.", 411: "No length.", 413: "Too large.",
  415: "Another type.", 429: "Too much waits: come again.", 503: "The log did not take it in time: nothing of it counts.",
};
const FATES = { stored: "In the log, and answered.", forgotten: "The log refused: answered 503, nothing kept.", overdue: "Took too long: answered 503." };
const SHED = { waited: "Waited too long: answered 503, not written.", gone: "Its sender had gone: not written." };

export class Gateway {
  constructor() {
    const title = el("h3", { id: "gateway-title" });
    setText(title, "Gateway of this server");
    this.words = el("p", { class: "small", id: "gateway-words" });
    this.batches = new TextTable("Batches, since the gateway began", ["Batch or upload", "Number", "Meaning"], [0, 2]);
    this.outcomes = new TextTable("Reports answered, by outcome", ["Outcome", "Reports", "Meaning"], [0, 2]);
    this.uploads = new TextTable("Uploads answered, by status", ["Status", "Uploads", "Meaning"], [2]);
    this.element = el("section", { class: "gateway", "aria-labelledby": title.id }, title, this.words,
      this.batches.element, this.outcomes.element, this.uploads.element);
  }

  update(metrics) {
    const batches = metrics.by("hubbub_gateway_batches_total", "fate");
    setText(this.words, this.#said(metrics, batches));
    const rows = (numbers, meanings, name = (key) => key) => [...numbers].map(([key, number]) => [name(key), count(number), meanings[key] ?? ""]);
    this.batches.update([...rows(batches, FATES, (fate) => `Batches ${fate}`),
      ...rows(metrics.by("hubbub_gateway_shed_uploads_total", "reason"), SHED, (reason) => `Uploads shed: ${reason}`)]);
    this.outcomes.update(rows(metrics.by("hubbub_gateway_reports_total", "outcome"), OUTCOMES));
    this.uploads.update(rows(metrics.by("hubbub_gateway_uploads_total", "status"), STATUSES));
  }

  #said(metrics, batches) {
    if (metrics.failed) return "The metrics of this server are out of reach from here; a proxy may keep /metrics to itself.";
    if (!metrics.families) return "Fetching the metrics of this server.";
    if (!batches.size) return "This server takes no reports: collectors are processes of their own, and each says at its /metrics what it took, refused and holds.";
    const parts = [metrics.of("hubbub_gateway_healthy") === 1 ? "The log takes batches" : "The log takes no batches just now"];
    const accepted = metrics.by("hubbub_gateway_reports_total", "outcome").get("accepted") ?? 0;
    const stored = batches.get("stored") ?? 0;
    if (stored) {
      parts.push(`${fixed(accepted / stored, 1)} accepted reports a batch`);
      parts.push(`${fixed((1000 * (metrics.of("hubbub_gateway_write_seconds_total") ?? 0)) / stored, 1)} ms to write one`);
    }
    parts.push(`${count(metrics.of("hubbub_gateway_pending_bytes") ?? 0)} bytes of uploads wait for an answer`);
    return `${parts.join(" · ")}.`;
  }
}
