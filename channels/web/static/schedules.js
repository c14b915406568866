// What agents are to do later, or again and again, and taking it back.

import { call } from "/static/net.js";
import { $, announce, fullTime, h } from "/static/dom.js";

export async function showSchedules() {
  const told = h("p.outcome", { role: "status", testid: "schedules-told", hidden: true });
  const rows = h("tbody", { testid: "schedule-rows" });
  const load = async () => {
    const { schedules } = await call("GET", "/schedules");
    rows.replaceChildren(...schedules.map((schedule) => row(schedule, cancel)));
    if (!schedules.length) rows.append(h("tr", {}, h("td.faint", { colSpan: 6, testid: "no-schedules" }, "Nothing is scheduled.")));
  };
  const cancel = async (schedule, button) => {
    button.disabled = true;
    let words;
    try {
      words = (await call("DELETE", `/schedules/${encodeURIComponent(schedule.schedule_id)}`, { allow: [403, 404] })).message;
      await load();
    } catch (error) {
      words = `${error.message}. Nothing was cancelled; try again.`;
      button.disabled = false;
    }
    told.textContent = words;
    told.hidden = false;
    announce(words);
  };
  $("audit").replaceChildren(h("table", {},
    h("thead", {}, h("tr", {}, ["What", "When", "Next", "Where", "By", ""].map((name) => h("th", { scope: "col" }, name)))), rows), told);
  await load();
}

function row(schedule, cancel) {
  const button = h("button.plain", {
    type: "button", testid: "cancel-schedule", "aria-label": `Cancel ${schedule.name || schedule.code}`, onclick: () => cancel(schedule, button),
  }, "Cancel");
  const place = schedule.where.startsWith("web:") ? "on this page" : schedule.where;
  const where = schedule.session_id ? h("a", { href: `#/s/${encodeURIComponent(schedule.session_id)}` }, place) : place;
  return h("tr", { testid: "schedule", data: { scheduleId: schedule.schedule_id } },
    h("td", {}, schedule.instruction), h("td", {}, schedule.often), h("td", {}, fullTime(schedule.next_at)),
    h("td", {}, where), h("td", {}, schedule.by), h("td", {}, button));
}
