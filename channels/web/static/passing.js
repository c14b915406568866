// What can be done with a request besides deciding it: take it back, pass it on, post it once more.

import { h } from "/static/dom.js";

/** The row below an open card. `press(path, body)` sends; `put(form)` shows a form in place of the buttons. */
export function passing(card, { press, put, back }) {
  const act = (verb, body = {}) => press(`/pending/${encodeURIComponent(card.pending_id)}/${verb}`, body);
  const button = (name, words, run, title) => h("button.link", { type: "button", testid: name, onclick: run, title: title ?? null }, words);
  return h("div.passing", { testid: "card-passing" },
    button("cancel", "Cancel the request", () => act("cancel"), "It does not run, and nobody has refused it"),
    button("give", "Pass on", () => put(giveForm(back, (to) => act("give", { to }))), "Have somebody else decide"),
    card.home ? button("show", `Post again in ${card.home}`, () => act("show"), "The older cards stay live") : null);
}

function giveForm(back, give) {
  const field = h("input", { type: "text", testid: "give-to", "aria-label": "Who decides from now on", placeholder: "slack:T1:U2, telegram:4, web:boss" });
  return h("form.edit", {
    testid: "give-form",
    onsubmit: (event) => { event.preventDefault(); if (field.value.trim()) give(field.value.trim()); else field.focus(); },
    onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); back(); } },
  }, field, h("div.buttons", {},
    h("button.plain", { type: "submit", testid: "give-submit" }, "Pass on"),
    h("button.quiet", { type: "button", onclick: back }, "Cancel")));
}
