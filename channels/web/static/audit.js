// The audit log: who decided what, on which arguments, newest first.

import { call } from "/static/net.js";
import { $, fullTime, h } from "/static/dom.js";

const PAGE = 100;

export async function showAudit() {
  const rows = h("tbody", { testid: "audit-rows" });
  const more = h("button.plain", { type: "button", testid: "audit-more", hidden: true }, "Older entries");
  let before = null;
  const load = async () => {
    const { audit } = await call("GET", `/audit?limit=${PAGE}${before === null ? "" : `&before=${before}`}`);
    rows.append(...audit.map(row));
    before = audit.at(-1)?.seq ?? before;
    more.hidden = audit.length < PAGE;
    if (!rows.children.length) rows.append(h("tr", {}, h("td.faint", { colSpan: 5 }, "Nothing has been decided yet.")));
  };
  more.addEventListener("click", load);
  $("audit").replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, ["When", "Who", "What", "On what", "Arguments"].map((name) => h("th", { scope: "col" }, name)))), rows), more);
  await load();
}

function row(entry) {
  const place = entry.session_id
    ? h("a", { href: `#/s/${encodeURIComponent(entry.session_id)}${entry.pending_id ? `/${encodeURIComponent(entry.pending_id)}` : ""}` }, entry.tool || "conversation")
    : entry.tool;
  return h("tr", { data: { seq: entry.seq } },
    h("td", {}, fullTime(entry.at)), h("td.mono", {}, entry.actor), h("td", {}, entry.what, entry.detail ? h("span.faint", {}, ` ${entry.detail}`) : null),
    h("td", {}, place), h("td.mono.faint", { title: entry.args_hash }, entry.args_hash.slice(0, 12)));
}
