// Approval and question cards. A card shows everything before it can be decided, and every press is answered.

import { call } from "/static/net.js";
import { announce, fullTime, h, shortTime, span, time, typing } from "/static/dom.js";
import { editForm } from "/static/forms.js";

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
    const print = JSON.stringify([next.state, next.status, next.decided_by, next.expires_at, next.fields]);
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
  const answer = (value) => press(`/pending-questions/${encodeURIComponent(card.pending_id)}/answer`, { answer: value });

  function open() {
    return card.kind === "approval" ? openApproval() : openQuestion();
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
        "Approve, and do not ask again for exactly this in this conversation") : null,
      card.scopes.includes("always") ? button("approve-always", "Always", "plain", () => approve("always"),
        "Approve, and never ask again for exactly this") : null,
      card.fields.length || card.schema ? button("edit", "Edit", "plain", actions.edit, "E, while the card has the focus") : null,
      button("deny", "Deny", "danger", actions.deny, "D, while the card has the focus"),
      button("deny-feedback", "Deny with feedback", "danger.soft", actions.feedback));
    element.onkeydown = keys({ a: actions.approve, d: actions.deny, e: card.fields.length || card.schema ? edit : null }, element);
    return [
      head("Needs approval", card.tool),
      card.reason ? h("p.reason", {}, card.reason) : null,
      card.preview ? h("pre.preview", { testid: "preview" }, card.preview) : null,
      argumentList(card.fields), facts(card), buttons, extra,
    ].filter(Boolean);
  }

  function openQuestion() {
    const pick = (index) => card.options[index] && answer(card.options[index].value);
    const handlers = {};
    let choices = null;
    if (card.options.length && card.multi) choices = multi(card, answer, handlers);
    else if (card.options.length) {
      card.options.forEach((_, index) => { if (index < 9) handlers[String(index + 1)] = () => pick(index); });
      choices = h("div.choices", {}, card.options.map((option, index) =>
        h("button.choice", { type: "button", testid: "option", data: { value: option.value }, onclick: () => pick(index) },
          h("span.number", { "aria-hidden": "true" }, String(index + 1)),
          h("span", {}, option.label, option.description ? h("span.faint", {}, option.description) : null))));
    }
    element.onkeydown = keys(handlers, element);
    const free = card.allow_text || !card.options.length ? freeText(card, answer) : null;
    const unknown = card.about === "unknown"; // the gateway asks: which call it was must be seen
    return [head(unknown ? "Outcome unknown" : "Question", unknown ? card.tool : ""),
      h("p.question", { testid: "question" }, card.question), unknown ? argumentList(card.fields) : null, choices, free, facts(card),
    ].filter(Boolean);
  }

  function closed() {
    const words = STATE_WORDS[card.state] ?? card.state;
    element.onkeydown = null;
    return [
      h("p.verdict", { testid: "card-status" }, seal(card), h("span", {}, card.status || words),
        card.decided_at ? h("span.faint", {}, " ", time(card.decided_at)) : null),
      card.kind === "question" ? h("p.question", {}, card.question) : null,
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
export function argumentList(fields) {
  if (!fields.length) return h("p.faint", { testid: "no-arguments" }, "Called without arguments.");
  const long = (field) => field.value.length > 80 || field.value.includes("\n");
  return h("dl.args", { testid: "arguments" }, fields.map((field) => h("div", { class: long(field) ? "long" : null },
    h("dt", {}, field.name, field.size > 300 ? h("span.faint", {}, ` ${field.size.toLocaleString()} characters`) : null),
    h("dd", {}, field.size === 0 ? h("em.faint", {}, "empty") : h("pre", {}, field.value)))));
}

function facts(card) {
  const deciders = card.deciders || card.approvers.join(", ");
  const rows = [
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

function multi(card, answer, handlers) {
  const boxes = card.options.map((option) => h("input", { type: "checkbox", value: option.value }));
  const confirm = h("button.primary", { type: "submit", testid: "confirm", disabled: true }, "Confirm");
  const look = () => { confirm.disabled = !boxes.some((box) => box.checked); };
  boxes.forEach((box, index) => { if (index < 9) handlers[String(index + 1)] = () => { box.checked = !box.checked; look(); }; });
  return h("form.choices", {
    onchange: look,
    onsubmit: (event) => {
      event.preventDefault();
      answer(card.options.filter((_, index) => boxes[index].checked).map((option) => option.value));
    },
  }, card.options.map((option, index) => h("label.choice", { testid: "option", data: { value: option.value } }, boxes[index],
    h("span", {}, option.label, option.description ? h("span.faint", {}, option.description) : null))),
  h("div.buttons", {}, confirm));
}

function freeText(card, answer) {
  const words = card.options.length ? "Something else" : "Your answer";
  const field = h("input", { type: "text", testid: "answer-text", "aria-label": words, placeholder: words });
  return h("form.free", {
    onsubmit: (event) => {
      event.preventDefault();
      if (!field.value.trim()) field.focus();
      else answer(card.multi ? [field.value.trim()] : field.value.trim());
    },
  }, field, h("button.plain", { type: "submit", testid: "answer-submit" }, "Answer"));
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
