// Approval and question cards. A card shows everything before it can be decided, and every press is answered.

import { call } from "/static/net.js";
import { announce, fullTime, h, shortTime, span, time, typing } from "/static/dom.js";
import { editForm } from "/static/forms.js";
import { passing } from "/static/passing.js";
import { previewOf } from "/static/preview.js";
import { questionControls } from "/static/questions.js";

const STATE_WORDS = { decided: "Decided", expired: "Expired", superseded: "Closed" };
const OUTCOME_WORDS = {
  resumed: "Done", recorded: "Recorded", already: "Already decided", expired: "Expired", superseded: "Closed",
  forbidden: "Not allowed", invalid: "Not valid", unknown: "Not known",
};

/** A card's element. `element.update(card)` brings it up to date; `settled()` is called after each press. */
export function makeCard(card, { settled }) {
  const element = h("section.card", {
    role: "group", tabindex: "-1", testid: "card",
    data: { pendingId: card.pending_id, kind: card.kind, callId: card.call_id },
  });
  const outcome = h("p.outcome", { role: "status", testid: "outcome", hidden: true });
  let drawn = "", busy = false;

  element.update = (next) => {
    const print = JSON.stringify([next.state, next.status, next.decided_by, next.expires_at, next.fields, next.deciders, next.hidden]);
    if (print === drawn) return; // an open form keeps its place
    drawn = print;
    card = next;
    const focused = element.contains(document.activeElement);
    element.dataset.state = card.state;
    element.tabIndex = card.state === "open" ? 0 : -1;
    element.setAttribute("aria-label", label(card));
    element.replaceChildren(...(card.state === "open" ? open() : closed()), outcome);
    if (focused) element.focus({ preventScroll: true });
  };

  async function press(path, body, { form = null } = {}) {
    if (busy) return;
    busy = true;
    element.setAttribute("aria-busy", "true");
    for (const button of element.querySelectorAll("button")) button.disabled = true;
    let result;
    try {
      const sent = typeof body === "string" ? { raw: body } : { body };
      result = await call("POST", path, { ...sent, allow: [403, 404, 409, 422] });
    } catch (error) {
      result = { error: { message: `${error.message}. Nothing was decided here; try again.` } };
    }
    busy = false;
    element.removeAttribute("aria-busy");
    for (const button of element.querySelectorAll("button")) button.disabled = false;
    tell(result);
    announce(outcome.textContent);
    if (form) form.complain(result.outcome === "invalid" ? result.problems ?? [] : []);
    await settled(element, result);
    tell(result);
  }

  function tell(result) {
    const words = result.error ? "Not done" : OUTCOME_WORDS[result.outcome] ?? result.outcome;
    // What the card's own line says by now is not said twice.
    const settled = card.state !== "open" && ["resumed", "expired", "superseded"].includes(result.outcome);
    const told = result.error?.message ?? result.message ?? "";
    const dated = /\d{4}-\d\d-\d\d/.test(told) || typeof result.at !== "number";
    outcome.dataset.outcome = result.error ? "error" : result.outcome;
    outcome.replaceChildren(...(told.startsWith(words) ? [] : [h("strong", {}, `${words}:`), " "]), told,
      dated ? "" : h("span", { title: fullTime(result.at) }, ` at ${shortTime(result.at)}`));
    outcome.hidden = settled;
  }

  const resolve = (body, options) => press(`/pending-approvals/${encodeURIComponent(card.pending_id)}/resolve`, body, options);
  const answer = (value, options) => press(`/pending-questions/${encodeURIComponent(card.pending_id)}/answer`, { answer: value }, options);

  function open() {
    if (card.hidden) return openHidden();
    return card.kind === "approval" ? openApproval() : openQuestion();
  }

  /** What its rule shows to those who may decide, seen by somebody else. */
  function openHidden() {
    element.onkeydown = null;
    const extra = h("div.extra");
    const back = () => { extra.replaceChildren(); element.focus(); };
    const put = (form) => { extra.replaceChildren(form); form.querySelector("input").focus(); };
    return [
      card.kind === "approval" ? head("Needs approval", card.tool) : head("Question", ""),
      h("p.faint", { testid: "hidden" }, "What exactly is asked for is shown to those who may decide."),
      facts(card), passing(card, { press, put, back }), extra,
    ];
  }

  function openApproval() {
    const extra = h("div.extra");
    const back = () => { extra.replaceChildren(); buttons.hidden = false; element.focus(); };
    const put = (form) => {
      extra.replaceChildren(form);
      buttons.hidden = true;
      form.querySelector("input:not(:disabled), textarea:not(:disabled), select:not(:disabled)")?.focus();
      element.scrollIntoView({ block: "nearest" });
    };
    const approve = (scope) => resolve({ decision: "approve", ...(scope === "once" ? {} : { scope }) });
    const edit = () => {
      const form = editForm(card, {
        cancel: back,
        submit: () => {
          const { json, problems } = form.read();
          if (problems) form.complain(problems);
          else resolve(`{"decision":"approve","edited_args":${json}}`, { form });
        },
      });
      put(form.element);
    };
    const actions = {
      approve: () => approve("once"), deny: () => resolve({ decision: "deny" }),
      edit, feedback: () => put(feedbackForm(back, (why) => resolve({ decision: "deny", feedback: why }))),
    };
    const button = (name, words, style, act, title) =>
      h(`button.${style}`, { type: "button", testid: name, onclick: act, title: title ?? null }, words);
    const buttons = h("div.buttons", { testid: "card-buttons" },
      button("approve", "Approve", "primary", actions.approve, "A, while the card has the focus"),
      card.scopes.includes("session") ? button("approve-session", "For this session", "plain", () => approve("session"),
        card.covers || "Approve, and do not ask again for exactly this in this conversation") : null,
      card.scopes.includes("always") ? button("approve-always", "Always", "plain", () => approve("always"),
        card.covers || "Approve, and never ask again for exactly this") : null,
      card.fields.length || card.schema ? button("edit", "Edit", "plain", actions.edit, "E, while the card has the focus") : null,
      button("deny", "Deny", "danger", actions.deny, "D, while the card has the focus"),
      button("deny-feedback", "Deny with feedback", "danger.soft", actions.feedback));
    element.onkeydown = keys({ a: actions.approve, d: actions.deny, e: card.fields.length || card.schema ? edit : null }, element);
    return [
      head("Needs approval", card.tool),
      card.reason ? h("p.reason", {}, card.reason) : null,
      ...previewOf(card),
      argumentList(card.fields), card.covers ? h("p.faint", { testid: "covers" }, card.covers) : null,
      facts(card), buttons, passing(card, { press, put, back }), extra,
    ].filter(Boolean);
  }

  function openQuestion() {
    const handlers = {}, extra = h("div.extra");
    const back = () => { extra.replaceChildren(); element.focus(); };
    const put = (form) => { extra.replaceChildren(form); form.querySelector("input").focus(); };
    const controls = questionControls(card, answer, handlers);
    element.onkeydown = keys(handlers, element);
    const unknown = card.about === "unknown"; // the gateway asks: which call it was must be seen
    return [head(unknown ? "Outcome unknown" : "Question", unknown ? card.tool : ""),
      h("p.question", { testid: "question" }, card.question, card.hint ? h("span.faint", {}, ` ${card.hint}`) : null),
      unknown ? argumentList(card.fields) : null, ...controls, facts(card), passing(card, { press, put, back }), extra,
    ].filter(Boolean);
  }

  function closed() {
    const words = STATE_WORDS[card.state] ?? card.state;
    element.onkeydown = null;
    return [
      h("p.verdict", { testid: "card-status" }, seal(card), h("span", {}, card.status || words),
        card.decided_at ? h("span.faint", {}, " ", time(card.decided_at)) : null),
      card.kind === "question" && card.question ? h("p.question", {}, card.question) : null,
    ].filter(Boolean);
  }

  element.update(card);
  return element;
}

/** What came of it at a glance; the words beside it say the same. */
function seal(card) {
  const good = /^(Approved|Answered)/.test(card.status), bad = /^Denied/.test(card.status);
  return h(`span.seal${good ? ".good" : bad ? ".bad" : ""}`, { "aria-hidden": "true" }, good ? "✓" : bad ? "✕" : "–");
}

const label = (card) =>
  `${card.kind === "approval" ? `Approval of ${card.tool}` : "Question"}, ${card.state === "open" ? "waiting for you" : card.status || card.state}`;

const head = (badge, name) => h("header", {}, h("span.badge.hot", {}, badge), name ? h("h3.mono", { testid: "card-tool" }, name) : null);

/** Every argument, whole. Long ones say how long they are, so that nothing hides below a fold. */
export function argumentList(fields, hidden = false) {
  if (hidden) return h("p.faint", { testid: "hidden-arguments" }, "Only those who may decide see the arguments.");
  if (!fields.length) return h("p.faint", { testid: "no-arguments" }, "Called without arguments.");
  const long = (field) => field.value.length > 80 || field.value.includes("\n");
  return h("dl.args", { testid: "arguments" }, fields.map((field) => h("div", { class: long(field) ? "long" : null },
    h("dt", {}, field.name, field.size > 300 ? h("span.faint", {}, ` ${field.size.toLocaleString()} characters`) : null),
    h("dd", {}, field.size === 0 ? h("em.faint", {}, "empty") : h("pre", {}, field.value)))));
}

function facts(card) {
  const deciders = card.deciders || card.approvers.join(", ");
  const rows = [
    card.works_for ? ["Asked by", `${card.agent}, working for ${card.works_for}`] : null,
    deciders ? ["Who may decide", deciders] : null,
    card.expires_at ? ["Expires", h("span", { title: fullTime(card.expires_at) }, `${span(card.expires_at)} (${fullTime(card.expires_at)})`)] : null,
    ["Asked", time(card.requested_at)],
    card.code ? ["Code", h("span.mono", {}, card.code)] : null,
    card.args_hash && card.kind === "approval" ? ["Hash", h("span.mono.hash", { title: card.args_hash, tabIndex: -1 }, card.args_hash)] : null,
    card.state === "open" && card.status ? ["Agreed", card.status] : null,
  ].filter(Boolean);
  return h("dl.facts", { testid: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function feedbackForm(back, deny) {
  const field = h("textarea", { rows: "2", testid: "feedback", "aria-label": "Why not, and what to do instead", placeholder: "Why not, and what to do instead" });
  return h("form.edit", {
    testid: "feedback-form",
    onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) deny(field.value.trim()); else field.focus(); },
    onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); back(); } },
  }, field, h("div.buttons", {},
    h("button.danger", { type: "submit", testid: "feedback-submit" }, "Deny and say why"),
    h("button.quiet", { type: "button", onclick: back }, "Cancel")));
}

/** Single keys work while the card itself has the focus, never while somebody types or is on a button. */
function keys(handlers, element) {
  return (event) => {
    if (event.target !== element || typing(event) || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = handlers[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  };
}
