// Rounds in full, fetched by name and kept: the live document holds one round of each survey.

import { stateKey } from "./answers.js";

export class Rounds {
  constructor(answers) {
    this.answers = answers;
  }

  // What is known of a line's round: the newest document that came, or null; asks for a newer one where there is.
  get(line) {
    return this.answers.get(line.json, stateKey(line))?.document ?? null;
  }
}
