// The two lists beside the conversation: what waits for a person, and the conversations.

import { call } from "/static/net.js";
import { $, announce, h, show, shortTime, span, time } from "/static/dom.js";

const STATUS_WORDS = {
  running: "working", queued: "queued", pending_approval: "needs approval", pending_question: "has a question",
};
let known = null; // ids that were waiting at the last look

export async function refreshLists(current) {
  const [{ pending }, { sessions }] = await Promise.all([call("GET", "/pending"), call("GET", "/sessions")]);
  const titles = new Map(sessions.map((session) => [session.session_id, session.title]));
  draw($("waiting"), pending, (card) => card.pending_id, (card) => waiting(card, titles.get(card.session_id), current));
  draw($("sessions"), sessions, (session) => session.session_id, (session) => line(session, current));
  for (const [name, list] of [["waiting", pending], ["sessions", sessions]]) {
    $(`${name}-count`).textContent = String(list.length);
    $(`${name}-count`).classList.toggle("zero", list.length === 0);
    show($(`${name}-none`), list.length === 0);
  }
  $("waiting-count").classList.toggle("hot", pending.length > 0);
  $("menu-count").textContent = String(pending.length);
  show($("menu-count"), pending.length > 0);
  document.title = pending.length ? `(${pending.length}) Threadgate` : "Threadgate";
  const ids = new Set(pending.map((card) => card.pending_id));
  if (known && [...ids].some((id) => !known.has(id))) announce(`${pending.length} waiting for you`);
  known = ids;
}

function waiting(card, title, current) {
  const words = card.kind === "question" ? String(card.args.question ?? "A question") : card.tool;
  return h("a", {
    href: `#/s/${encodeURIComponent(card.session_id)}/${encodeURIComponent(card.pending_id)}`,
    testid: "waiting-item",
    data: { pendingId: card.pending_id, kind: card.kind },
    "aria-current": card.session_id === current ? "true" : null,
  },
  h("span.row", {}, h("span.name", { class: card.kind === "approval" ? "name mono" : "name" }, words)),
  h("span.row.faint", {}, h("span.name", {}, title || card.agent),
    card.expires_at ? h("span", {}, `ends ${span(card.expires_at)}`) : time(card.requested_at)));
}

function line(session, current) {
  const words = STATUS_WORDS[session.status];
  return h("a", {
    href: `#/s/${encodeURIComponent(session.session_id)}`,
    testid: "session-item",
    data: { sessionId: session.session_id, status: session.status },
    "aria-current": session.session_id === current ? "page" : null,
  },
  h("span.row", {}, h("span.name", {}, session.title || "Untitled"),
    session.pending ? h("span.count.hot", { "aria-label": `${session.pending} waiting` }, String(session.pending)) : null),
  h("span.row.faint", {}, h("span.name", {}, words ? `${session.agent}, ${words}` : session.agent),
    h("span", { title: shortTime(session.updated_at) }, shortTime(session.updated_at))));
}

/** Redraws a list without losing the keyboard's place in it. */
function draw(list, items, key, make) {
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.key : null;
  list.replaceChildren(...items.map((item) => h("li", { data: { key: key(item) } }, make(item))));
  if (focused) list.querySelector(`li[data-key="${CSS.escape(focused)}"] a`)?.focus();
}
