// Several calls of one step that one card asks about: each keeps its own card and buttons, and below them stand
// those for all. Once everything is decided the frame goes away and each call is back where it was said.

import { announce, h } from "/static/dom.js";
import { call } from "/static/net.js";

/** A frame's element: `take(element)` puts a call into it, `update(cards)` counts, `dissolve()` lets all go. */
export function makeShared(id, { settled }) {
  const title = h("h3", { testid: "shared-title" });
  const calls = h("div.calls");
  const buttons = h("div.buttons", { testid: "shared-buttons" });
  const outcome = h("p.outcome", { role: "status", testid: "shared-outcome", hidden: true });
  const element = h("section.shared", { role: "group", testid: "shared-card", data: { card: id } },
    h("header", {}, h("span.badge.hot", {}, "Needs approval"), title), calls, buttons, outcome);
  const places = new Map(); // where each call stood
  let busy = false;

  element.take = (member) => {
    if (member.parentElement === calls) return;
    const mark = document.createComment("");
    member.replaceWith(mark);
    places.set(member, mark);
    if (!element.isConnected) mark.before(element);
    calls.append(member);
  };

  element.update = (cards) => {
    const waiting = cards.filter((card) => card.state === "open");
    element.dataset.state = waiting.length ? "open" : "decided";
    title.textContent = `${cards.length} calls, ${waiting.length} of them waiting`;
    element.setAttribute("aria-label", title.textContent);
    const all = waiting.length > 1 && !waiting.some((card) => card.hidden);
    if (buttons.dataset.count === String(all && waiting.length)) return; // the focus stays on them
    buttons.dataset.count = String(all && waiting.length);
    buttons.replaceChildren(...(all ? [
      h("button.primary", { type: "button", testid: "approve-all", onclick: () => press("approve") }, `Approve all (${waiting.length})`),
      h("button.danger", { type: "button", testid: "deny-all", onclick: () => press("deny") }, `Deny all (${waiting.length})`),
    ] : []));
  };

  element.dissolve = () => {
    element.dataset.state = "decided";
    for (const [member, mark] of places) if (member.parentElement === calls) mark.replaceWith(member);
    element.remove();
  };

  async function press(decision) {
    if (busy) return;
    busy = true;
    for (const button of element.querySelectorAll("button")) button.disabled = true;
    let result;
    try {
      const path = `/pending-cards/${encodeURIComponent(id)}/resolve`;
      result = await call("POST", path, { body: { decision }, allow: [403, 404, 409, 422] });
    } catch (error) {
      result = { error: { message: `${error.message}. Look at each call, and try again.` } };
    }
    busy = false;
    for (const button of element.querySelectorAll("button")) button.disabled = false;
    outcome.dataset.outcome = result.error ? "error" : result.outcome;
    outcome.textContent = result.error?.message ?? result.message ?? "";
    outcome.hidden = false;
    announce(outcome.textContent);
    await settled(element, result);
  }

  return element;
}
