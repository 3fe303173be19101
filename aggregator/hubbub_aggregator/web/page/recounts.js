// Recounts beside a release: the same round counted again without an issuer of tokens. They replace nothing.

import { el, setText, show } from "./dom.js";
import { plural } from "./format.js";

export class Recounts {
  constructor() {
    this.title = el("h3", { class: "quiet-title" });
    this.list = el("ul");
    this.link = el("a");
    this.foot = el("p", { class: "small" }, "The numbers above stay the release, with all reports. The recounts in full: ", this.link, ".");
    this.element = el("section", { class: "recounts", "aria-label": "Recounts" }, this.title, this.list, this.foot);
    setText(this.title, "Recounted");
    setText(this.link, "JSON");
  }

  update(survey, round, line) {
    const lines = (line.recounts ?? []).map(words);
    show(this.element, lines.length > 0);
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    lines.forEach((text, i) => setText(this.list.children[i] ?? this.list.appendChild(el("li")), text));
    if (lines.length) this.link.href = `api/v1/surveys/${survey.digest}/rounds/${round.round}/recounts`;
  }
}

function words({ without_issuers: issuers, devices, suppressed }) {
  const names = issuers.map((name) => `“${name}”`).join(" and ");
  return `Without the reports that ${names} vouched for: ${suppressed ? "too few devices for estimates" : plural(devices, "device", "devices")}.`;
}
