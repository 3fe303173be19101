// The state of a survey in words: from its schedule, its rounds and a clock. Pure, so that a test can ask any hour.

import { count, plural, when } from "./format.js";

const UNITS = [["day", "days", 86_400, 2], ["h", "h", 3600, 1.5], ["min", "min", 60, 1.5], ["s", "s", 1, 0]];

// Seconds as one rounded number of the unit that suits it: 10,700 -> "3 h".
export function span(seconds) {
  const length = Math.max(0, seconds);
  const [one, many, size] = UNITS.find(([, , unit, least]) => length >= least * unit);
  return plural(Math.round(length / size), one, many);
}

// When the survey begins and ends, in seconds since 1970; nulls where the document has no schedule.
export function period({ schedule }) {
  const start = schedule ? Date.parse(schedule.start) / 1000 : NaN;
  if (!Number.isFinite(start)) return { start: null, end: null };
  return { start, end: start + schedule.round_s * schedule.rounds };
}

// The stage of a round: collecting and provisional ones are open, sealed and withheld ones final.
export function stageOf(round) {
  if (round.sealed) return round.suppressed ? "withheld" : "sealed";
  return round.suppressed ? "collecting" : "provisional";
}

export const BADGES = {
  future: "Not begun", waiting: "Waiting", silent: "No answers",
  collecting: "Collecting", provisional: "Provisional", sealed: "Sealed", withheld: "Withheld",
};

// The devices that an open round needs before its first estimate: a cohort, and as many again behind it.
export function firstEstimate(survey) {
  return 2 * Math.max(1, survey.minimum_cohort);
}

// {stage, words} of a survey; `now` in seconds since 1970. `round` is the round that is shown, null without one.
export function surveyState(survey, round, now) {
  const { start, end } = period(survey);
  if (start !== null && now < start && !round) {
    return { stage: "future", words: `Begins in ${span(start - now)}, on ${when(start)} UTC.` };
  }
  if (!round && end !== null && now >= end) {
    return { stage: "silent", words: `Over since ${when(end)} UTC: nobody answered.` };
  }
  if (!round) {
    const until = end === null ? "" : ` It ends in ${span(end - now)}, on ${when(end)} UTC.`;
    return { stage: "waiting", words: `Open: waiting for the first ${plural(firstEstimate(survey), "device", "devices")}. None has answered yet.${until}` };
  }
  const stage = stageOf(round);
  return { stage, words: roundWords(survey, round, stage, now) };
}

function roundWords(survey, round, stage, now) {
  const least = count(survey.minimum_cohort);
  if (stage === "sealed") return `Final: ${plural(round.devices, "device was", "devices were")} counted, and these numbers will not change.`;
  if (stage === "withheld") {
    return round.accounting.accepted ? "Final: too few devices answered, so this round has no estimates." : "Final: nobody answered.";
  }
  const left = Date.parse(round.end) / 1000 - now;
  const over = left <= 0 ? " The round is over and will be sealed soon." : "";
  if (stage === "collecting") {
    return over ? `Too few devices for estimates so far.${over}`
      : `Waiting for the first ${plural(firstEstimate(survey), "device", "devices")}: estimates start then. The round ends in ${span(left)}.`;
  }
  return `Still counting: estimates as of ${plural(round.as_of ?? round.devices, "device", "devices")}, moving in steps of at least ${least}.${over}`;
}
