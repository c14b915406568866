// One conversation: what is stored, as the server tells it, and above it what is happening right now.
// Events only hasten the next look at the stored state; nothing is shown that a reload would take away.

import { argumentList, makeCard } from "/static/cards.js";
import { makeShared } from "/static/shared.js";
import { $, announce, h, markup, show, soon } from "/static/dom.js";

const CALL_WORDS = {
  allowed: "waiting to run", started: "running", done: "done", error: "failed", waiting: "waits for you",
  unknown: "outcome unknown", asked: "asked for",
};
const ENDS = {
  refused: "The model declined.", denied: "Stopped: a person said no.", exhausted_steps: "Stopped: the step limit was reached.",
  max_turns: "Stopped: the step limit was reached.", exhausted_tokens: "Stopped: the token limit was reached.",
  deadline: "Stopped: the time limit was reached.", stalled: "Stopped: it was repeating itself.",
  loop_detected: "Stopped: it kept making the same call.", cancelled: "Stopped.", crashed: "Something failed.",
};
const STATUS_WORDS = { running: "Working", queued: "Queued", pending_approval: "Needs approval", pending_question: "Has a question" };
const PICTURE = /\.(png|jpe?g|gif|webp)$/i; // what is shown beside its link
const NEAR = 120; // pixels from the end within which the view stays at the end
const DRESSED = 20_000; // characters; a longer reply grows as plain text
const squash = (text) => text.replace(/\s+/g, " ").trim();

export class Conversation {
  /** `look()` asks for a fresh view soon; `render(text)` gives the safe HTML of an answer so far. */
  constructor({ look, render }) {
    Object.assign(this, { look, render });
    this.dress = soon(() => this.#dress(), 120);
    this.log = $("log");
    this.clear(null);
    $("view").addEventListener("scroll", () => this.#watchScroll(), { passive: true });
    $("down").addEventListener("click", () => this.toBottom());
  }

  clear(session) {
    Object.assign(this, {
      session, total: 0, calls: new Map(), states: new Map(), cards: new Map(), shared: new Map(), noticed: 0, passing: [], turns: 0, said: "", live: "", html: "", final: false,
      step: "", trouble: "", status: "idle", sending: [],
    });
    this.log.replaceChildren();
    this.#drawLive();
    this.#drawQueue([]);
    this.#drawStatus();
    show($("down"), false);
  }

  /**
   * Bring the page to what the server has stored. Not `current`: a turn began since it was asked for.
   * `known`: what was on its way when it was asked for; the server had it by then, wherever it shows it.
   */
  apply(view, current = true, known = []) {
    const stick = this.#nearEnd() || this.total === 0;
    const first = this.total === 0;
    if (view.total < this.total) this.clear(view.session_id);
    view.messages.forEach((message, offset) => {
      if (view.from + offset !== this.total) return;
      this.#stored(view.notices, this.total);
      this.#append(message);
    });
    for (const call of view.calls) this.#setCall(call.call_id, call.is_error ? "error" : call.state, call.content);
    for (const card of view.cards) this.#placeCard(card);
    this.#together(view.cards);
    this.#stored(view.notices, Infinity);
    if (current) {
      this.status = view.status;
      if (view.status !== "running") this.#endLive();
    }
    this.sending = this.sending.filter((one) => !known.includes(one));
    this.#drawQueue(view.queued);
    this.#drawStatus();
    this.#drawLive();
    if (stick) this.toBottom();
    else if (view.messages.length) show($("down"), true);
    if (first) this.#watchScroll();
  }

  /** One event of the stream. */
  event(type, data) {
    const stick = this.#nearEnd();
    if (type === "assistant:delta") this.#grow(data.text);
    else if (type === "assistant:text") this.#finish(data.text);
    else if (type === "budget:check") this.step = data.step > 1 ? `step ${data.step} of ${data.max_steps}` : "";
    else if (type === "session") this.#begun();
    else if (type === "tool:started") this.#setCall(data.call_id, "started", "");
    else if (type === "tool:result") this.#setCall(data.call_id, data.is_error ? "error" : "done", data.content);
    else if (type === "error") this.trouble = data.message;
    else if (type === "done" && data.text) announce(`Answer: ${data.text.slice(0, 300)}`);
    if (type !== "assistant:delta" && type !== "budget:check") this.look();
    this.#drawLive();
    if (type === "session") this.#drawStatus();
    if (stick) this.toBottom();
  }

  /** The line broke: once it is back, the server begins the growing answer again. */
  interrupted() {
    if (!this.final) this.#endLive();
    this.#drawLive();
  }

  /** Show what was just sent, until the server's view has it. */
  sent(posted, text) {
    this.sending.push({ id: posted.message_id, text, since: this.total });
    this.#drawQueue([]);
    this.toBottom();
  }

  /** `passing`: heard just now; it gives way to the stored one, if the server keeps it. */
  notice(text, kind = "notice", passing = false, { html = null, link = null } = {}) {
    const element = h("div.note", { testid: "notice", data: { kind } }, html === null ? text : markup(html), link);
    this.log.append(element);
    if (!passing) return;
    this.passing.push({ element, text });
    if (/[`\n]/.test(text)) this.#inWords(element, text);
  }

  async #inWords(element, text) {
    const html = await this.render(text);
    if (html !== null && element.isConnected) element.replaceChildren(markup(html));
  }

  #stored(notices, before) {
    while (this.noticed < notices.length && notices[this.noticed].after <= before) {
      const { text, kind, number, file, html } = notices[this.noticed++];
      const index = this.passing.findIndex((one) => one.text === text);
      if (index >= 0) this.passing.splice(index, 1)[0].element.remove();
      this.notice("", kind, false, { html: text === file ? null : html, link: file ? this.#download(number, file) : null });
    }
  }

  #download(number, name) {
    const href = `/sessions/${encodeURIComponent(this.session)}/files/${number}`;
    const link = h("a", { testid: "file", href, download: name }, `Save ${name}`);
    if (!PICTURE.test(name)) return [" ", link];
    const grown = (event) => {
      const view = $("view"), below = view.scrollHeight - view.scrollTop - view.clientHeight;
      if (below < event.target.offsetHeight + NEAR) this.toBottom();
    };
    return [h("img.sent", { testid: "picture", src: href, alt: name, onload: grown }), link];
  }

  openCards() {
    return [...document.querySelectorAll("#log .card[data-state=open]")];
  }

  toBottom() {
    $("view").scrollTop = $("view").scrollHeight;
    show($("down"), false);
  }

  // ---- stored messages

  #append(message) {
    this.total += 1;
    if (message.kind === "summary" || message.kind === "note") {
      const words = message.content.map((block) => block.text ?? "").join("\n");
      const title = message.kind === "summary" ? "Earlier messages were summarised" : "Note";
      this.log.append(h("details.note", {}, h("summary", {}, title), h("p", {}, words)));
      return;
    }
    const blocks = [];
    for (const block of message.content) {
      if (block.type === "tool_result") this.#setCall(block.tool_use_id, block.is_error ? "error" : "done", block.content);
      else if (!(message.silent && block.type === "text")) blocks.push(this.#block(block));
    }
    if (message.role === "assistant") this.#heard(message);
    else this.#drop(message);
    const drawn = blocks.filter(Boolean);
    if (!drawn.length && message.silent) this.log.append(h("p.note.faint", { testid: "silent" }, "Nothing to say."));
    if (!drawn.length) return;
    this.log.append(h(`article.message.${message.role}`, {
      testid: `message-${message.role}`, "aria-label": message.role === "user" ? message.author || "You" : "Agent",
    }, drawn));
  }

  #block(block) {
    if (block.type === "text") return !block.text ? null : block.html !== undefined ? markup(block.html) : h("div.words", {}, block.text);
    if (block.type === "tool_use") return this.#call(block);
    if (block.type === "thinking") {
      return block.text ? h("details.thinking", {}, h("summary", {}, "Thinking"), h("p", {}, block.text)) : null;
    }
    return h("p.attachment", {}, block.name || block.media_type || block.type);
  }

  #call(block) {
    const state = h("span.state", { testid: "tool-state" });
    const result = h("div.result");
    const gist = (block.fields ?? []).map((field) => `${field.name}: ${field.value}`).join(", ");
    const chip = h("details.chip", { testid: "tool-chip" },
      h("summary", {}, h("span.dot", { "aria-hidden": "true" }), h("span.mono", {}, block.name),
        h("span.gist.faint", {}, gist.slice(0, 160)), state),
      argumentList(block.fields ?? [], block.hidden), result);
    const element = h("div.call", { data: { callId: block.id, tool: block.name } }, chip);
    this.calls.set(block.id, { element, state, result });
    const known = this.states.get(block.id) ?? { state: block.invalid ? "error" : "asked", content: block.invalid ?? "" };
    this.#setCall(block.id, known.state, known.content);
    return element;
  }

  #setCall(id, state, content) {
    const before = this.states.get(id);
    if (before && ["done", "error"].includes(before.state) && !["done", "error"].includes(state)) return;
    this.states.set(id, { state, content: content || before?.content || "" });
    const call = this.calls.get(id);
    if (!call) return;
    call.element.dataset.state = state;
    call.state.textContent = CALL_WORDS[state] ?? state;
    const words = this.states.get(id).content;
    call.result.replaceChildren(...(words ? [h("pre", { testid: "tool-result" }, words)] : []));
  }

  #placeCard(card) {
    let element = this.cards.get(card.pending_id);
    if (element) element.update(card);
    else {
      element = makeCard(card, { settled: (drawn, result) => this.settled(drawn, result) });
      this.cards.set(card.pending_id, element);
      (this.calls.get(card.call_id)?.element ?? this.log).append(element);
      if (card.state === "open") announce(element.getAttribute("aria-label"));
    }
    const call = this.calls.get(card.call_id)?.element;
    if (call) {
      if (element.parentElement !== call) call.append(element);
      call.dataset.card = `${card.kind}-${card.state}`;
    }
  }

  /** Calls that are decided together stand in one frame, until all of them are decided. */
  #together(cards) {
    const groups = new Map();
    for (const card of cards) if (card.card) groups.set(card.card, [...(groups.get(card.card) ?? []), card]);
    for (const [id, members] of groups) {
      let frame = this.shared.get(id);
      if (members.length > 1 && members.some((card) => card.state === "open")) {
        frame ??= makeShared(id, { settled: (drawn, result) => this.settled(drawn, result) });
        this.shared.set(id, frame);
        for (const card of members.sort((one, other) => one.place - other.place)) {
          frame.take(this.calls.get(card.call_id)?.element ?? this.cards.get(card.pending_id));
        }
        frame.update(members);
      } else if (frame) {
        frame.dissolve();
        this.shared.delete(id);
      }
    }
  }

  // ---- what is happening now

  #begun() {
    Object.assign(this, { trouble: "", status: "running", step: "", turns: this.turns + 1 });
    if (!this.final) this.#endLive(); // a turn that was taken up again says its reply again
  }

  #grow(text) {
    if (this.final) this.#endLive();
    this.status = "running";
    this.live = text ? this.live + text : ""; // without text: the reply begins anew
    this.dress();
  }

  /** The growing words in the form that the stored answer will have. */
  async #dress() {
    const { live, session } = this;
    if (!live || live.length > DRESSED || this.final) return;
    const html = await this.render(live);
    if (html === null || session !== this.session || !this.live.startsWith(live)) return;
    const stick = this.#nearEnd();
    this.html = html;
    this.#drawLive();
    if (stick) this.toBottom();
  }

  #finish(text) {
    Object.assign(this, { live: text, final: true });
    if (squash(this.said) === squash(text)) this.#endLive();
  }

  #heard(message) {
    this.said = message.content.filter((block) => block.type === "text").map((block) => block.text).join("\n\n");
    if (this.live && squash(this.said).startsWith(squash(this.live))) this.#endLive();
  }

  #endLive() {
    Object.assign(this, { live: "", html: "", final: false });
  }

  #drawLive() {
    const parts = [];
    if (this.live) {
      const dressed = this.html && this.live.length <= DRESSED;
      const words = dressed ? markup(this.html) : h("div.words", {}, this.live);
      words.classList.add("growing");
      words.dataset.testid = "live-text";
      parts.push(h("article.message.assistant", {}, words));
    } else if (this.status === "running") {
      parts.push(h("p.working", { testid: "working" }, h("span.pulse", { "aria-hidden": "true" }), this.step ? `Working, ${this.step}` : "Working"));
    }
    if (this.trouble) parts.push(h("p.note", { testid: "turn-error", data: { kind: "error" } }, this.trouble));
    else if (ENDS[this.status]) parts.push(h("p.note", { testid: "turn-end" }, ENDS[this.status]));
    $("live").replaceChildren(...parts);
  }

  #drop(message) {
    const words = message.content.filter((block) => block.type === "text").map((block) => block.text).join("\n\n");
    const index = this.sending.findIndex((one) => one.since < this.total && squash(words).includes(squash(one.text)));
    if (index >= 0) this.sending.splice(index, 1);
  }

  #drawQueue(queued) {
    this.sending = this.sending.filter((one) => !queued.some((entry) => entry.message_id === one.id));
    const rows = [...queued.map((entry) => [entry.text, "waits for its turn"]), ...this.sending.map((one) => [one.text, "sent"])];
    $("queue").replaceChildren(...rows.map(([text, words]) => h("article.message.user.queued", { testid: "message-queued" },
      h("div.words", {}, text), h("span.faint", {}, words))));
  }

  #drawStatus() {
    const status = $("status");
    status.dataset.status = this.status;
    status.textContent = STATUS_WORDS[this.status] ?? "";
    show($("stop"), Boolean(STATUS_WORDS[this.status]));
  }

  #nearEnd() {
    const view = $("view");
    return view.scrollHeight - view.scrollTop - view.clientHeight < 80;
  }

  #watchScroll() {
    if (this.#nearEnd()) show($("down"), false);
  }
}
