// The state of a survey and of a round in words: from the schedule, what was accepted, and a clock. Pure.
// surveyState says what `hubbub.survey.survey_state` says, word for word; a test holds the two together.

import { count, plural } from "./format.js";

const MOST_LISTED = 2000; // rounds that are looked at, the newest: a survey may have a million of them
const UNITS = [["d", 86_400], ["h", 3600], ["min", 60]]; // two of a unit are told in it

// A length of time in one unit, rounded up to whole seconds and to the unit, and never as 0: "40 s", "3 h".
export function span(seconds) {
  const whole = Math.max(Math.ceil(seconds), 1);
  for (const [name, length] of UNITS) if (whole >= 2 * length) return `${count(halfEven(whole / length))} ${name}`;
  return `${whole} s`;
}

// Rounds as Python does: a half to the even neighbour.
function halfEven(value) {
  const below = Math.floor(value);
  if (value - below !== 0.5) return Math.round(value);
  return below % 2 ? below + 1 : below;
}

// The name of a round by its number, from 1.
export function roundName({ schedule }, number) {
  return schedule ? `round ${count(number)} of ${count(schedule.rounds)}` : `round ${count(number)}`;
}

// The accepted reports by which an open round's estimates move.
function step(survey) {
  return survey.step ?? Math.max(survey.minimum_cohort, 1);
}

// The accepted reports that an open round needs before its first estimate: a step, and as many again behind it.
export function firstEstimate(survey) {
  return 2 * step(survey);
}

// {name, words} of a survey at a moment, in seconds since 1970.
export function surveyState(survey, now) {
  const { schedule } = survey;
  if (!schedule) return { name: "open", words: "" };
  const start = Date.parse(schedule.start) / 1000;
  if (now < start) return { name: "begins", words: `begins in ${span(start - now)}` };
  const end = start + schedule.round_s * schedule.rounds;
  if (now < end) return open(survey, start, now);
  const over = end + (schedule.lateness_s ?? 0);
  if (now < over) return { name: "late", words: `its last round has ended; late answers are taken for ${span(over - now)} more` };
  return { name: "over", words: overWords(survey) };
}

function open(survey, start, now) {
  const { round_s: length } = survey.schedule;
  const current = Math.floor((now - start) / length) + 1;
  const ends = `${roundName(survey, current)} ends in ${span(start + current * length - now)}`;
  const line = survey.rounds.find((each) => each.round === current);
  if ((line?.accepted ?? 0) >= firstEstimate(survey)) return { name: "open", words: ends };
  return { name: "waiting", words: `waiting for the first ${count(firstEstimate(survey))} devices; ${ends}` };
}

function overWords(survey) {
  if (survey.rounds_omitted) return "over"; // rounds that are not listed may have had more
  const most = Math.max(0, ...survey.rounds.map((line) => line.accepted ?? 0));
  if (most === 0) return "over, nobody answered";
  return most < survey.minimum_cohort ? `over, no round had the ${count(survey.minimum_cohort)} devices that a release needs` : "over";
}

// The rounds of a survey that have ended, late answers included, and that nobody answered, in order; of more than are
// listed, those since the oldest that is.
export function unanswered({ schedule, rounds, rounds_omitted: omitted }, now) {
  if (!schedule) return [];
  const since = now - (schedule.lateness_s ?? 0) - Date.parse(schedule.start) / 1000;
  const ended = Math.min(schedule.rounds, Math.floor(since / schedule.round_s));
  const listed = new Set(rounds.map((line) => line.round));
  const found = [];
  for (let number = Math.max(omitted ? rounds[0].round : 1, ended + 1 - MOST_LISTED); number <= ended; number += 1) {
    if (!listed.has(number)) found.push(number);
  }
  return found;
}

// Words as a sentence.
export function sentence(words) {
  return words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "";
}

// The stage of a round: collecting and provisional ones are open, sealed and withheld ones final.
export function stageOf(round) {
  if (round.sealed) return round.suppressed ? "withheld" : "sealed";
  return round.suppressed ? "collecting" : "provisional";
}

// The word on a badge, by the stage of the round that is shown or, without one, by the state of the survey.
export const BADGES = {
  collecting: "Collecting", provisional: "Provisional", sealed: "Sealed", withheld: "Withheld",
  begins: "Not begun", waiting: "Waiting", open: "Open", late: "Closing", over: "Over",
};

// What a round's numbers are, in a sentence.
export function roundWords(survey, round) {
  const stage = stageOf(round);
  const final = `Round ${count(round.round)} is final`; // the survey may have another that is open
  if (stage === "sealed") return `${final}: ${plural(round.devices, "device was", "devices were")} counted, and these numbers will not change.`;
  if (stage === "withheld") return `${final}: too few devices answered, so it has no estimates.`;
  const least = count(step(survey));
  if (stage === "collecting") return `Estimates start once ${least} devices have been counted and as many again after them.`;
  return `Still counting: estimates as of ${plural(round.as_of ?? round.devices, "device", "devices")}, moving in steps of at least ${least}, each shown when the next is full.`;
}
