// Small words for building the page. Text only ever enters as text.

export const $ = (id) => document.getElementById(id);

/** An element: h("p.note", {title: "x", onclick: f}, "text", child). `testid` becomes data-testid. */
export function h(spec, props = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "testid") element.dataset.testid = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** The one door for markup: HTML that the server made of an answer, everything in it escaped there. */
export function markup(html) {
  const element = h("div.md");
  element.innerHTML = html;
  return element;
}

export function show(element, visible) {
  element.hidden = !visible;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const SPAN = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

export const fullTime = (seconds) => FULL.format(new Date(seconds * 1000));

/** A clock time today, a date before. */
export function shortTime(seconds) {
  const then = new Date(seconds * 1000);
  return then.toDateString() === new Date().toDateString() ? CLOCK.format(then) : DAY.format(then);
}

/** "in 3 days", "2 hours ago". */
export function span(seconds) {
  const left = seconds - Date.now() / 1000;
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(left) >= size) return SPAN.format(Math.trunc(left / size), unit);
  }
  return SPAN.format(Math.trunc(left), "second");
}

export const time = (seconds, words) =>
  h("time", { datetime: new Date(seconds * 1000).toISOString(), title: fullTime(seconds) }, words ?? shortTime(seconds));

/** Say something to those who do not see the page. */
export function announce(words) {
  $("announce").textContent = words;
}

/** Runs `work` once for all calls within `wait` ms of the first: a stream of calls cannot hold it off. */
export function soon(work, wait) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => { timer = 0; work(); }, wait);
  };
}

/** Random text for ids. (`crypto.randomUUID` exists on secure addresses only.) */
export function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(15)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const typing = (event) => event.target.closest?.("input, textarea, select, [contenteditable]") !== null;
