// Writing a message. What is typed is kept until the server has stored it; sending twice is harmless.

import { call, Unreachable } from "/static/net.js";
import { $, randomId, show } from "/static/dom.js";

const key = (session) => `draft:${session ?? "new"}`;

export class Composer {
  /** `where()` gives {session, agent}; `sent(posted, text)` is told what the server stored. */
  constructor({ where, sent, command }) {
    Object.assign(this, { where, sent, command, busy: false });
    this.field = $("composer-text");
    this.field.addEventListener("input", () => { this.#keep(); this.#fit(); });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return; // 229: an input method is at work
      event.preventDefault();
      this.#send();
    });
    $("composer").addEventListener("submit", (event) => { event.preventDefault(); this.#send(); });
  }

  /** Bring back what was being written in this conversation. */
  load(session) {
    this.field.value = this.#kept(session).text;
    show($("composer-error"), false);
    this.#fit();
  }

  /** Send these words. */
  say(words) {
    this.field.value = words;
    this.#keep();
    this.#send();
  }

  focus() {
    if (matchMedia("(hover: hover)").matches) this.field.focus(); // no keyboard popping up on phones
  }

  #kept(session) {
    try {
      return { text: "", id: "", ...JSON.parse(sessionStorage.getItem(key(session)) ?? "{}") };
    } catch {
      return { text: "", id: "" };
    }
  }

  #keep(id = "") {
    const { session } = this.where();
    const text = this.field.value;
    if (text) sessionStorage.setItem(key(session), JSON.stringify({ text, id }));
    else sessionStorage.removeItem(key(session));
  }

  #fit() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, innerHeight * 0.4)}px`;
  }

  async #send() {
    const text = this.field.value;
    if (this.busy || !text.trim()) return;
    if (this.command(text.trim())) {
      this.#clear(this.where().session);
      return;
    }
    const { session, agent } = this.where();
    const kept = this.#kept(session);
    // The same words after a failure go out under the same id: the server takes them once.
    const id = (kept.text === text && kept.id) || randomId();
    this.#keep(id);
    this.#setBusy(true);
    show($("composer-error"), false);
    try {
      const posted = await call("POST", `/agents/${encodeURIComponent(agent)}/messages`, {
        body: { text, message_id: id, ...(session ? { session_id: session } : {}) },
      });
      this.#clear(session, text);
      if (!session && this.field.value && this.where().session === session) {
        // Written on meanwhile: it goes along into the conversation that just began.
        sessionStorage.removeItem(key(null));
        sessionStorage.setItem(key(posted.session_id), JSON.stringify({ text: this.field.value, id: "" }));
      }
      this.sent(posted, text, session);
    } catch (error) {
      const problem = $("composer-error");
      problem.textContent = error instanceof Unreachable
        ? "Not sent: the server cannot be reached. Your text is kept; press Enter to try again."
        : `Not sent: ${error.message}${error.mend ? ` (${error.mend})` : ""}`;
      show(problem, true);
    } finally {
      this.#setBusy(false);
    }
  }

  #clear(session, text = null) {
    if (text === null || this.#kept(session).text === text) sessionStorage.removeItem(key(session));
    if (this.where().session === session && (text === null || this.field.value === text)) {
      this.field.value = "";
      this.#fit();
    }
  }

  #setBusy(busy) {
    this.busy = busy;
    $("send").disabled = busy;
  }
}
