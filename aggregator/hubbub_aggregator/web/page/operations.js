// For the operator: is every report accounted for, does counting keep up, what is refused and why.

import { el, setText } from "./dom.js";
import { now } from "./clock.js";
import { count, plural } from "./format.js";
import { Gateway } from "./gateway.js";
import { Identity } from "./identity.js";
import { Metrics } from "./metrics.js";
import { address } from "./route.js";
import { span } from "./states.js";
import { TextTable } from "./texttable.js";

const REASONS = [
  ["duplicate", "Duplicate", "A report that came before: a device that had no answer sends the same bytes again."],
  ["early", "Early", "For a round that has not begun: a device whose clock is ahead."],
  ["late", "Late", "After its round and its lateness, or after the seal."],
  ["invalid", "Invalid", "No report of its survey: a symbol or a round that it does not have."],
  ["over_quota", "Over quota", "More than one round's quota of reports: a flood, or far more devices than planned."],
];

export class OperationsPage {
  constructor() {
    this.heading = el("h2", { class: "page-title", tabindex: -1 });
    setText(this.heading, "Operations");
    this.identity = new Identity();
    this.lag = el("p", { class: "small", id: "log-state" });
    this.reasons = new TextTable("Refusals by reason", ["Reason", "Reports", "Share of received", "Meaning"], [0, 3]);
    this.surveys = new TextTable("By survey, the round that is shown", ["Survey", "Round", "Received", "Accepted", "Refused", "Quota of a round", "Used"], [0]);
    this.issuers = new TextTable("Issuers of tokens, the round that is shown", ["Issuer", "Survey", "Round", "Accepted", "Share", "Duplicate", "Over quota"], [0, 1]);
    this.partitions = new TextTable("Workers: batches in the log, by partition", ["Partition", "Counted up to", "End of the log", "Waiting", "Last save"], []);
    this.gateway = new Gateway();
    this.metrics = new Metrics(() => this.#drawMetrics());
    const total = el("h3");
    setText(total, "Every report, accounted for");
    const accounted = el("section", { class: "totals", id: "totals", "aria-labelledby": "totals-title" }, total, this.identity.element, this.lag);
    total.id = "totals-title";
    this.element = el("div", { class: "page operations" }, this.heading, accounted,
      this.reasons.element, this.surveys.element, this.issuers.element, this.partitions.element, this.gateway.element);
  }

  get title() {
    return "Operations";
  }

  tick() {
    this.metrics.refresh();
    this.#drawMetrics();
  }

  update(live) {
    const { accounting } = live;
    this.live = live;
    this.metrics.refresh();
    this.identity.update(accounting);
    setText(this.lag, logState(live));
    const total = accounting?.attempts ?? 0;
    this.reasons.update([
      ...REASONS.map(([key, name, why]) => [name, count(accounting?.[key] ?? 0), of(accounting?.[key] ?? 0, total), why]),
      ["Unknown survey", count(live.unknown ?? 0), "outside the sum", "A digest that no survey record announced."],
      ["Unreadable", count(live.dead ?? 0), "records", "Log records that could not be decoded, set aside."],
    ]);
    this.surveys.update(live.surveys.filter((survey) => survey.shown).map((survey) => {
      const { attempts, accepted } = survey.shown.accounting;
      const { quota } = survey;
      const href = address({ survey: survey.digest });
      return [{ text: survey.title || survey.id, href }, String(survey.shown.round), count(attempts), count(accepted), count(attempts - accepted),
        quota ? count(quota) : "none", quota ? of(accepted, quota) : "–"];
    }));
    const issuers = live.surveys.flatMap(({ id, title, shown }) => (shown?.issuers ?? []).map((line) => [line.issuer || "others", title || id,
      String(shown.round), count(line.accepted), of(line.accepted, shown.accounting.accepted), count(line.duplicate), count(line.over_quota)]));
    this.issuers.update(issuers);
    this.#drawMetrics();
  }

  // What moves with the clock, or comes from the metrics.
  #drawMetrics() {
    if (!this.live) return;
    const saved = this.metrics.by("hubbub_partition_saved_timestamp_seconds", "partition");
    this.partitions.update((this.live.partitions ?? []).map((each) => {
      const at = saved.get(String(each.partition));
      return [String(each.partition), count(each.offset), count(each.end), count(each.lag), at ? `${span(Math.max(0, now() - at))} ago` : "–"];
    }));
    this.gateway.update(this.metrics);
  }
}

function of(part, total) {
  return total ? `${((100 * part) / total).toFixed(2)} %` : "–";
}

// What an operator must know at once: the head of every page says it.
export function troubles(live) {
  const found = live.stale ? [`Standing still since ${live.stale.since.replace("T", " ").replace("Z", " UTC")}: ${live.stale.why}.`] : [];
  if (live.unsealed) found.push(`No round is sealed: ${live.unsealed}.`);
  return found;
}

export function logState(live) {
  const partitions = live.partitions ?? [];
  const lag = partitions.reduce((sum, partition) => sum + (partition.lag ?? 0), 0);
  const parts = [
    lag ? `${plural(lag, "log record waits", "log records wait")} to be counted` : "Every log record is counted",
    plural(partitions.length, "partition", "partitions"),
  ];
  if (live.unknown) parts.push(`${plural(live.unknown, "report", "reports")} of unknown surveys, outside this sum`);
  if (live.dead) parts.push(`${plural(live.dead, "unreadable record", "unreadable records")} skipped`);
  return parts.join(" · ");
}
