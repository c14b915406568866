// Puts the parts together: the address says what is open, the server says what is so.

import { showAudit } from "/static/audit.js";
import { Composer } from "/static/composer.js";
import { Conversation } from "/static/conversation.js";
import { $, h, show, soon } from "/static/dom.js";
import { showGrants } from "/static/grants.js";
import { refreshLists } from "/static/lists.js";
import { showSchedules } from "/static/schedules.js";
import { call, Line, Refused, Unreachable, whenLoggedOut } from "/static/net.js";

const POLL_MS = 15_000; // changes in other channels and replicas send no nudge to this page
let me = null, agent = "", session = null, line = null, looking = null, again = false, wanted = null;

const PANELS = { audit: ["Audit log", showAudit], grants: ["Grants", showGrants], schedules: ["Schedules", showSchedules] };
const lookSoon = soon(() => look(), 40);
const conversation = new Conversation({ look: lookSoon, render });
const composer = new Composer({ where: () => ({ session, agent }), sent, command });
const lists = soon(() => quietly(() => refreshLists(session)), 120);

conversation.settled = async (card, result) => {
  const inside = card.contains(document.activeElement) || document.activeElement === document.body;
  await look();
  lists();
  const done = card.dataset.state !== "open";
  if (inside && done && !result.error) {
    const next = conversation.openCards()[0];
    if (next) next.focus();
    else composer.focus();
  }
};

async function render(text) {
  try {
    return (await call("POST", "/page/render", { body: { text } })).html;
  } catch {
    return null; // the plain words stay
  }
}

// ---- what is open

function place() {
  const [view, id, pending] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return view === "s" && id ? { view: "session", id, pending: pending ?? null } : { view: PANELS[view] ? view : "new", id: null, pending: null };
}

async function open() {
  const { view, id, pending } = place();
  wanted = pending;
  drawer(false);
  const panel = PANELS[view];
  for (const [name, visible] of [["audit", panel], ["view", !panel], ["composer", !panel]]) show($(name), Boolean(visible));
  $("view").classList.toggle("fresh", view === "new");
  if (panel) {
    line?.close();
    line = null;
    [session, looking] = [null, null];
    head(panel[0], "");
    conversation.clear(null);
    await quietly(panel[1]);
    follow();
  } else if (id !== session || !line) {
    session = id;
    looking = null;
    conversation.clear(id);
    composer.load(id);
    head(id ? "Conversation" : "New conversation", id ? "" : agent);
    agents();
    line?.close();
    line = null;
    if (id) await look();
    else follow();
    if (!pending) composer.focus();
  } else if (pending) reveal();
  lists();
}

function head(title, name) {
  $("title").textContent = title;
  $("agent").textContent = name;
}

function agents() {
  const choice = $("agent-select");
  show($("agent-choice"), !session && me.agents.length > 1);
  if (choice.options.length !== me.agents.length) {
    choice.replaceChildren(...me.agents.map((name) => h("option", { value: name }, name)));
  }
  if (!session) {
    agent = sessionStorage.getItem("agent") ?? me.default_agent;
    if (!me.agents.includes(agent)) agent = me.default_agent;
    choice.value = agent;
    $("agent").textContent = agent;
  }
}

/** Fetch what is new in the open session. One request at a time; asked again meanwhile, it goes again. */
function look() {
  if (!session) return Promise.resolve();
  if (looking) {
    again = true;
    return looking;
  }
  const run = (async () => {
    do {
      again = false;
      const id = session, turns = conversation.turns, sending = [...conversation.sending];
      try {
        const view = await call("GET", `/sessions/${encodeURIComponent(id)}?html=1&from=${conversation.total}`);
        if (session !== id) return;
        conversation.apply(view, turns === conversation.turns, sending);
        agent = view.agent;
        head(view.title || "Conversation", view.agent);
        if (!line) follow(view.last_event_id);
        reveal();
      } catch (error) {
        if (session === id) missing(error);
      }
    } while (again && looking === run);
  })();
  looking = run;
  return run.finally(() => { if (looking === run) looking = null; });
}

function missing(error) {
  if (error instanceof Unreachable) {
    banner("The server cannot be reached. Trying again.");
    if (!line) setTimeout(look, 1500);
  }
  else if (error instanceof Refused && error.status === 404) {
    conversation.clear(null);
    conversation.notice("This conversation does not exist here.", "error");
  } else if (!(error instanceof Refused && error.status === 401)) conversation.notice(error.message, "error");
}

/** Move to the card that the address names. */
function reveal() {
  if (!wanted) return;
  const card = conversation.cards.get(wanted);
  if (!card) return;
  wanted = null;
  card.scrollIntoView({ block: "center" });
  card.focus({ preventScroll: true });
}

// ---- the line to the server

function follow(after = null) {
  const id = session;
  const fresh = new Line({
    address: (cursor) => {
      if (!id) return "/page/changes";
      const from = cursor ?? after;
      return `/sessions/${encodeURIComponent(id)}/events?changes=1${from ? `&after=${encodeURIComponent(from)}` : ""}`;
    },
    on: (type, data) => {
      if (type === "changed") {
        if (data.text && (!data.conversation || data.conversation === session)) conversation.notice(data.text, data.kind, true);
        // Deliveries name a thread, changes name a session; only the latter can be told apart.
        if (data.kind !== "changed" || !data.conversation || data.conversation === session) lookSoon();
        lists();
        return;
      }
      conversation.event(type, data);
      if (["session", "approval:pending", "question:pending", "done"].includes(type)) lists();
    },
    onState: (connected, before) => {
      if (!connected) {
        conversation.interrupted();
        banner("Connection lost. Trying again; nothing is lost.");
      } else {
        banner("");
        if (before) look();
        lists();
      }
    },
    // The stream says only that it failed; a plain request says why.
    onRefused: async () => {
      try {
        await call("GET", "/page/me");
        if (id) await call("GET", `/sessions/${encodeURIComponent(id)}`);
      } catch (error) {
        if (error instanceof Refused && line === fresh) {
          fresh.close();
          line = null;
          banner("");
          if (error.status === 404) missing(error);
          return true;
        }
      }
      return false;
    },
  });
  line = fresh;
}

let bannerTimer = 0;
function banner(words) {
  clearTimeout(bannerTimer);
  const put = () => { $("banner").textContent = words; show($("banner"), Boolean(words)); };
  if (words && $("banner").hidden) bannerTimer = setTimeout(put, 500); // a blink is not worth a word
  else put();
}

async function quietly(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refused && error.status !== 401) banner(error.message);
  }
}

// ---- what people do

function sent(posted, text, from) {
  if (session !== from) return;
  if (posted.session_id !== session) {
    location.hash = `#/s/${encodeURIComponent(posted.session_id)}`; // opens it
    return;
  }
  if (!posted.duplicate) conversation.sent(posted, text);
  look();
  lists();
}

/** Words that are for the page, not for the agent. */
function command(text) {
  if (text === "/new") location.hash = "#/";
  else if (text === "/stop" && session) stop();
  else return false;
  return true;
}

async function stop() {
  $("stop").disabled = true;
  try {
    const { message } = await call("POST", `/sessions/${encodeURIComponent(session)}/stop`);
    if (message) conversation.notice(message, "notice", true);
  } catch (error) {
    conversation.notice(error.message, "error");
  }
  $("stop").disabled = false;
  look();
  lists();
}

function drawer(opened) {
  document.body.classList.toggle("drawer", opened);
  $("menu").setAttribute("aria-expanded", String(opened));
  show($("scrim"), opened);
  if (opened) $("new").focus();
}

// ---- coming in

async function login(event) {
  event.preventDefault();
  const problem = $("login-error");
  show(problem, false);
  try {
    await call("POST", "/page/login", { body: { token: $("token").value } });
    $("token").value = "";
    await begin();
  } catch (error) {
    problem.textContent = error.message;
    show(problem, true);
    $("token").select();
  }
}

async function begin() {
  try {
    me = await call("GET", "/page/me");
  } catch (error) {
    if (error instanceof Refused) return;
    show($("shell"), true);
    banner("The server cannot be reached. Trying again.");
    setTimeout(begin, 1500);
    return;
  }
  show($("login"), false);
  show($("shell"), true);
  banner("");
  $("actor").textContent = me.actor;
  $("examples").replaceChildren(...me.examples.map((words) =>
    h("button", { type: "button", testid: "example", onclick: () => composer.say(words) }, words)));
  show($("logout"), me.login);
  session = null;
  line?.close();
  line = null;
  await open();
}

whenLoggedOut(() => {
  line?.close();
  line = null;
  show($("shell"), false);
  show($("login"), true);
  $("token").focus();
});
$("login").addEventListener("submit", login);
$("logout").addEventListener("click", async () => {
  await quietly(() => call("POST", "/page/logout"));
  location.reload();
});
$("new").addEventListener("click", () => {
  if (place().view === "new") { drawer(false); composer.focus(); }
  else location.hash = "#/";
});
$("stop").addEventListener("click", stop);
$("menu").addEventListener("click", () => drawer(!document.body.classList.contains("drawer")));
$("scrim").addEventListener("click", () => drawer(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("drawer")) { drawer(false); $("menu").focus(); }
});
$("agent-select").addEventListener("change", (event) => {
  agent = event.target.value;
  sessionStorage.setItem("agent", agent);
  $("agent").textContent = agent;
});
addEventListener("hashchange", open);
setInterval(() => { if (me && $("login").hidden) lists(); }, POLL_MS);
// A page that nobody looks at gives its connection back: a browser has only six for one server.
document.addEventListener("visibilitychange", () => {
  if (!me || !$("login").hidden) return;
  if (document.hidden) {
    line?.close();
    line = null;
  } else {
    if (session) look();
    else follow();
    lists();
  }
});
begin();
