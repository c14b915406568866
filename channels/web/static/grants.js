// What is not asked about any more, and taking it back.

import { call } from "/static/net.js";
import { $, announce, fullTime, h } from "/static/dom.js";

export async function showGrants() {
  const told = h("p.outcome", { role: "status", testid: "grants-told", hidden: true });
  const rows = h("tbody", { testid: "grant-rows" });
  const load = async () => {
    const { grants } = await call("GET", "/grants");
    rows.replaceChildren(...grants.map((grant) => row(grant, revoke)));
    if (!grants.length) rows.append(h("tr", {}, h("td.faint", { colSpan: 5, testid: "no-grants" }, "Nothing is granted.")));
  };
  const revoke = async (grant, button) => {
    button.disabled = true;
    let words;
    try {
      words = (await call("DELETE", `/grants/${encodeURIComponent(grant.grant_id)}`, { allow: [403, 404] })).message;
      await load();
    } catch (error) {
      words = `${error.message}. Nothing was revoked; try again.`;
      button.disabled = false;
    }
    told.textContent = words;
    told.hidden = false;
    announce(words);
  };
  $("audit").replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, ["Tool", "Exactly these arguments", "Where", "By", ""].map((name) => h("th", { scope: "col" }, name)))), rows), told);
  await load();
}

function row(grant, revoke) {
  const button = h("button.plain", {
    type: "button", testid: "revoke", "aria-label": `Revoke ${grant.tool}`, onclick: () => revoke(grant, button),
  }, "Revoke");
  const where = grant.scope === "session"
    ? h("a", { href: `#/s/${encodeURIComponent(grant.session_id)}` }, "this session")
    : `every session of ${grant.agent}`;
  return h("tr", { testid: "grant", data: { grantId: grant.grant_id } },
    h("td.mono", {}, grant.tool), h("td.mono", {}, JSON.stringify(grant.args)), h("td", {}, where),
    h("td", {}, grant.by || grant.granted_by, h("span.faint", {}, ` ${fullTime(grant.granted_at)}`)), h("td", {}, button));
}
