// Requests and the event stream. A lost connection mends itself; nothing is asked of the person.

export class Refused extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? body?.message ?? `the server answered ${status}`);
    this.status = status;
    this.body = body ?? {};
    this.mend = body?.error?.mend ?? "";
  }
}

export class Unreachable extends Error {}

let onLoggedOut = () => {};
export const whenLoggedOut = (act) => { onLoggedOut = act; };

/** JSON in, JSON out. `allow`: statuses that are answers too, not errors. `raw`: a body that is JSON text already. */
export async function call(method, path, { body, raw, allow = [] } = {}) {
  let response;
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  try {
    response = await fetch(path, {
      method,
      headers: text === undefined ? {} : { "content-type": "application/json" },
      body: text,
      cache: "no-store",
    });
  } catch {
    throw new Unreachable("the server cannot be reached");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok || allow.includes(response.status)) return answer;
  if (response.status === 401) onLoggedOut();
  throw new Refused(response.status, answer);
}

const EVENTS = [
  "session", "budget:check", "assistant:delta", "assistant:text", "actauth:decision", "tool:started",
  "tool:result", "skill:loaded", "prompt:compaction", "loop:done", "loop:max_turns", "loop:denied",
  "loop:pending_approval", "loop:pending_question", "loop:stopped", "approval:pending",
  "question:pending", "done", "error", "changed",
];

/**
 * Follows one address. `resume()` names it anew at each try, so that a try continues after the last
 * event seen. `on(type, data)` gets events; `onState(connected, again)` the state of the line.
 */
export class Line {
  #source = null;
  #timer = 0;
  #tries = 0;
  #opened = false;
  constructor({ address, on, onState, onRefused }) {
    Object.assign(this, { address, on, onState, onRefused, cursor: null });
    this.#open();
  }

  #open() {
    const source = new EventSource(this.address(this.cursor));
    this.#source = source;
    source.addEventListener("open", () => {
      this.#tries = 0;
      this.onState(true, this.#opened);
      this.#opened = true;
    });
    for (const type of EVENTS) {
      source.addEventListener(type, (event) => {
        if (!(event instanceof MessageEvent) || this.#source !== source) return; // "error" is also the line's own
        if (event.lastEventId) this.cursor = event.lastEventId;
        this.on(type, JSON.parse(event.data));
      });
    }
    source.onerror = (event) => {
      if (event instanceof MessageEvent || this.#source !== source) return;
      source.close();
      this.onState(false, this.#opened);
      this.#retry();
    };
  }

  #retry() {
    clearTimeout(this.#timer);
    this.#tries += 1;
    this.#timer = setTimeout(async () => {
      if (this.#tries % 3 === 2 && (await this.onRefused())) return;
      if (this.#source) this.#open();
    }, Math.min(300 * 2 ** this.#tries, 4000));
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
