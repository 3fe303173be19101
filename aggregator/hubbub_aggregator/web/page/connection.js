// The way to the server: a stream of events while it lasts, polling while it does not, and a word on which it is.
//
// States: connecting, live, reconnecting (the stream broke moments ago), polling (no stream, but answers), lost.

const SILENCE_MS = 40_000; // the server beats every 15 s: two missed beats and some
const POLL_MS = 1_200; // with its jitter, a page that polls is at most 1.5 s and a request behind
const STREAM_MS = 5_000; // until a stream is tried again while polls are answered; twice as long each time
const PATIENCE_MS = 2_000; // a stream that comes back within this time was never gone
const MOST_WAIT_MS = 30_000;

export class Connection {
  constructor({ base, onDocument, onState }) {
    this.base = base;
    this.onDocument = onDocument;
    this.onState = onState;
    this.edition = "";
    this.failures = 0;
    this.patience = null;
    this.state = "connecting";
    this.#again();
    // A laptop that wakes, a phone that leaves a tunnel: try at once instead of when a timer says so.
    addEventListener("online", () => this.#again());
    // A page that is left may be kept for the way back, with its stream; six of them are all that a browser opens to
    // one server, and the seventh page would wait for minutes.
    addEventListener("pagehide", () => this.#rest());
    addEventListener("pageshow", (event) => { if (event.persisted) this.#again(); });
    // So would the seventh tab: one that nobody sees has no stream. It looks once, for its title's sake, and asks anew
    // when it is looked at.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#rest() : this.#again()));
  }

  #set(state) {
    this.state = state;
    this.onState(state);
  }

  #open() {
    clearTimeout(this.timer);
    if (typeof EventSource !== "function") {
      this.#poll();
      return;
    }
    this.source?.close();
    const source = new EventSource(`${this.base}events?last=${encodeURIComponent(this.edition)}`);
    this.source = source;
    source.addEventListener("live", (event) => {
      if (source === this.source) { this.#heard(); this.#take(event.data); }
    });
    source.addEventListener("beat", () => { if (source === this.source) this.#heard(); });
    source.addEventListener("error", () => { if (source === this.source) this.#broke(source); });
    this.#listen();
  }

  #listen() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.#broke(null), SILENCE_MS);
  }

  #heard() {
    this.failures = 0;
    clearTimeout(this.patience);
    clearTimeout(this.timer);
    this.patience = null;
    this.timer = null;
    this.#listen();
    if (this.state !== "live") this.#set("live");
  }

  #broke(source) {
    if (this.state === "live" && !this.patience) {
      this.patience = setTimeout(() => { if (this.state === "live") this.#set("reconnecting"); }, PATIENCE_MS);
    }
    // The browser retries a broken stream by itself, but not one that was refused, nor one that fell silent.
    if (source && source.readyState !== EventSource.CLOSED && this.failures < 1) {
      this.failures += 1;
      return;
    }
    this.failures += 1;
    this.streamAt = performance.now() + Math.min(MOST_WAIT_MS, STREAM_MS * 2 ** Math.min(this.failures - 1, 5));
    this.source?.close();
    clearTimeout(this.silence);
    this.#poll();
  }

  // One look by plain request, and the next one after it; the stream is tried again at growing and jittered distances.
  async #poll() {
    clearTimeout(this.timer);
    const { source } = this;
    try {
      const response = await fetch(`${this.base}live`, { cache: "no-cache", signal: AbortSignal.timeout(10_000) });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const text = await response.text();
      if (source !== this.source) return; // a stream was opened meanwhile: it knows better
      this.#take(text);
      clearTimeout(this.patience);
      this.patience = null;
      if (this.state !== "polling") this.#set("polling");
    } catch {
      if (source !== this.source) return;
      clearTimeout(this.patience);
      this.patience = null;
      this.#set("lost");
    }
    if (document.hidden) return; // `visibilitychange` goes on from here
    const wait = Math.min(MOST_WAIT_MS, this.state === "polling" ? POLL_MS : 1000 * 2 ** Math.min(this.failures - 1, 5));
    clearTimeout(this.timer);
    const polls = this.state === "polling" && performance.now() < this.streamAt;
    this.timer = setTimeout(() => (polls ? this.#poll() : this.#open()), wait * (0.75 + Math.random() / 2));
  }

  #rest() {
    this.source?.close();
    this.source = null;
    for (const timer of [this.timer, this.silence, this.patience]) clearTimeout(timer);
    this.patience = null;
  }

  #again() {
    this.failures = 0;
    if (document.hidden) this.#poll();
    else this.#open();
  }

  #take(text) {
    const document_ = JSON.parse(text);
    this.edition = document_.edition;
    this.onDocument(document_);
  }
}
