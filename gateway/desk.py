"""Answers commands, and says what the gateway itself has to say in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from gateway import notices
from gateway.agent import Agent
from gateway.approvals import Approve, Deny, Resolution
from gateway.clock import Clock
from gateway.commands import Command, help_text
from gateway.memory import Memory
from gateway.messages import Json, ThreadKey
from gateway.pairing import LET_IN, Pairing
from gateway.requests import Requests, Who
from gateway.resolutions import MOST_LOOKED_AT, Click, Resolutions
from gateway.schedules import Schedules
from gateway.store.base import Store
from gateway.store.rows import Delivery, Outgoing, PendingRecord, Press
from gateway.turns import Turns


class Desk:
    """One method per command; `on_deliveries` sends what was said at once."""

    def __init__(
        self,
        store: Store,
        turns: Turns,
        resolutions: Resolutions,
        agents: Mapping[str, Agent],
        agent_of: Callable[[ThreadKey], str],
        clock: Clock,
        on_deliveries: Callable[[Sequence[Delivery]], None],
        pairing: Pairing,
        requests: Requests,
        tenant_of: Callable[[ThreadKey], str] = lambda key: "",
        schedules: Schedules | None = None,
        is_private: Callable[[ThreadKey], bool] = lambda key: False,
        models: Sequence[str] = (),
    ) -> None:
        self._store, self._turns, self._resolutions = store, turns, resolutions
        self._agents, self._agent_of, self._clock = agents, agent_of, clock
        self._on_deliveries, self._tenant_of, self._pairing = on_deliveries, tenant_of, pairing
        self._requests, self._schedules, self._models = requests, schedules, models
        self._memory = Memory(store, is_private, tenant_of)
        self._answers: dict[str, Callable[[Command, Press], Awaitable[str]]] = {
            "new": self._new,
            "stop": self._stop,
            "status": self._status,
            "pending": self._pending,
            "grants": self._grants,
            "schedules": self._scheduled,
            "memory": self._notes,
            "approve": self._approve,
            "deny": self._deny,
            "model": self._model,
            "agent": self._agent,
            "pair": self._pair,
            "help": self._help,
        }

    def has_agent(self, name: str) -> bool:
        """Whether there is an agent of this name."""
        return name in self._agents

    async def say(self, key: ThreadKey, text: str, session_id: str = "") -> None:
        """A notice in a thread, through the outbox."""
        notice = Outgoing(key=key, kind="notice", payload={"text": text}, session_id=session_id)
        self._on_deliveries(await self._store.enqueue([notice], self._clock.now()))

    async def answer(self, press: Press, text: str) -> None:
        """Answer a command where it was given; one that only the bot has heard, for its author alone."""
        current = await self._store.session_of(press.key)
        payload: Json = {"text": text}
        if press.body.get("hidden"):
            payload |= {"only": list(press.actor), "reply_to": press.action_id}
        session_id = current.id if current is not None else ""
        notice = Outgoing(key=press.key, kind="notice", payload=payload, session_id=session_id)
        self._on_deliveries(await self._store.enqueue([notice], self._clock.now()))

    async def carry_out(self, command: Command, press: Press) -> str:
        """Do what a command says and answer it; the answer."""
        text = await self._answers[command.name](command, await self._placed(press))
        await self.answer(press, text)
        return text

    async def _placed(self, press: Press) -> Press:
        """A command that was given beside all threads means its author's newest one there."""
        if press.key.thread or not press.body.get("hidden"):
            return press
        own = await self._store.own_thread(press.key, press.actor)
        return press if own is None else msgspec.structs.replace(press, key=own)

    async def _new(self, command: Command, press: Press) -> str:
        return await self._fresh(press, await self._current_agent(press.key))

    async def _current_agent(self, key: ThreadKey) -> str:
        """The one that answers there now: chosen with /agent, else the route's."""
        view = await self._store.session_of(key)
        return view.agent if view is not None and view.agent in self._agents else self._agent_of(key)

    async def _fresh(self, press: Press, agent: str) -> str:
        by = notices.person(press.actor, press.body.get("author", ""))
        tenant, now = self._tenant_of(press.key), self._clock.now()
        done = await self._store.fresh_session(press.key, agent, tenant, by, press.actor, now)
        if done.session_id:
            self._turns.cancel(done.session_id, f"/new by {by}")
            self._turns.wake(done.session_id)
        self._turns.wake(done.new_session_id)
        closed = f" {len(done.closed)} open request(s) were closed." if done.closed else ""
        return f"A fresh conversation begins here.{closed}{notices.moved_on_text(done.schedules)}"

    async def _stop(self, command: Command, press: Press) -> str:
        by = notices.person(press.actor, press.body.get("author", ""))
        done = await self._store.stop(press.key, "", by, press.actor, self._clock.now())
        if not done.session_id or not (done.running or done.closed):
            return "There is nothing to stop."
        self._turns.cancel(done.session_id, f"/stop by {by}")
        self._turns.wake(done.session_id)
        parts = ["Stopped."]
        if done.closed:
            parts.append(f"{len(done.closed)} open request(s) were closed.")
        if done.queued:
            parts.append(f"{done.queued} waiting message(s) come next.")
        return " ".join(parts)

    async def _status(self, command: Command, press: Press) -> str:
        view = await self._store.session_of(press.key)
        if view is None:
            return f"Nothing has been said here yet. The agent is {self._agent_of(press.key)}."
        words = {"idle": "waiting for you", "running": "at work", "ready": "about to go on"}
        state = words.get(view.status, "waiting for somebody's decision")
        queued = f" {view.queued} message(s) wait." if view.queued else ""
        agent = self._agents.get(view.agent)
        model = view.model if view.model in self._models or agent is None else agent.model
        turn = await self._store.turn(view.turn_id) if view.turn_id else None
        used = notices.usage_text(turn.usage if turn is not None else {})
        return f"Agent {view.agent}: {state}.{queued} {view.log_length} messages so far, model {model}.{used}"

    async def _pending(self, command: Command, press: Press) -> str:
        match command.words:
            case ():
                return await self._waits_here(press)
            case ("mine",):
                records = await self._resolutions.waiting(press.actor, MOST_LOOKED_AT)
                return self._overview(records, press) or notices.NOTHING_IS_YOURS
            case ("all",):
                everything = await self._requests.everything(press.actor)
                if everything is None:
                    return notices.NOT_ALL
                return self._overview(everything, press) or notices.NOTHING_AT_ALL
            case ("show" | "cancel" as verb, code):
                return await self._about(verb, code, press)
            case ("give", code, *to) if to:
                return await self._about("give", code, press, " ".join(to))
            case _:
                return notices.PENDING_USAGE

    async def _waits_here(self, press: Press) -> str:
        records = await self._store.pendings(key=press.key)
        if press.body.get("hidden"):  # asked in private: also what waits for this person elsewhere
            theirs = await self._resolutions.waiting(press.actor)
            records += [record for record in theirs if record.id not in {r.id for r in records}]
        return self._overview(records, press) or notices.NOTHING_WAITS

    async def _about(self, verb: str, code: str, press: Press, to: str = "") -> str:
        """Show, cancel or pass on the request with this code."""
        record = await self._requests.by_code(code)
        if record is None:
            return notices.NOT_WAITING.format(code=code)
        who = _who(press, f"/pending {verb}")
        match verb:
            case "show":
                return (await self._requests.show(record.id, who)).text
            case "cancel":
                return (await self._requests.cancel(record.id, who)).text
            case _:
                return (await self._requests.give(record.id, who, to)).text

    def _overview(self, records: Sequence[PendingRecord], press: Press) -> str:
        """What waits, and what can be done with one; empty where nothing does."""
        return f"{self._listing(records, press)}\n\n{notices.PENDING_MORE}" if records else ""

    def _listing(self, records: Sequence[PendingRecord], press: Press) -> str:
        """What waits, in words; what others in the thread may not know is left out."""
        alone = press.body.get("hidden") or press.body.get("private")
        return notices.waiting_text(records, self._clock.now(), here=None if alone else press.key)

    async def _grants(self, command: Command, press: Press) -> str:
        """What is granted to this thread's agent, here or always; `revoke CODE` takes one back."""
        view = await self._store.session_of(press.key)
        found = await self._requests.grants(
            agent=await self._current_agent(press.key), session_id=view.id if view is not None else ""
        )
        match command.words:
            case ():
                return notices.grants_text(found) or notices.NO_GRANTS
            case ("revoke", code):
                wanted = next((g for g in found if g.code == code.casefold()), None)
                if wanted is None:
                    return notices.NO_SUCH_GRANT.format(code=code)
                return (await self._requests.revoke(wanted.id, _who(press, "/grants revoke")))[1]
            case _:
                return notices.GRANTS_USAGE

    async def _scheduled(self, command: Command, press: Press) -> str:
        """What is scheduled for this thread, or everywhere; `cancel CODE` ends one."""
        if self._schedules is None:
            return notices.NO_SCHEDULES_AT_ALL
        alone = press.body.get("hidden") or press.body.get("private")
        view, now = await self._store.session_of(press.key), self._clock.now()
        found = await self._schedules.here(press.key, view.id if view is not None else "")
        match command.words:
            case ():
                return notices.schedules_text(found, now) or notices.NO_SCHEDULES
            case ("all",):
                everything = await self._schedules.everything(press.actor)
                if everything is None:
                    return notices.NOT_ALL_SCHEDULES
                here = None if alone else press.key
                return notices.schedules_text(everything, now, here=here) or notices.NO_SCHEDULES_AT_ALL
            case ("cancel", code):
                who = _who(press, "/schedules cancel")
                wanted = await self._schedules.by_code(code, who, found)
                if wanted is None:
                    return notices.NO_SUCH_SCHEDULE.format(code=code)
                return (await self._schedules.cancel(wanted.id, who))[1]
            case _:
                return notices.SCHEDULES_USAGE

    async def _notes(self, command: Command, press: Press) -> str:
        alone = bool(press.body.get("hidden"))
        return await self._memory.carry_out(command.words, press.actor, press.key, alone=alone)

    async def _approve(self, command: Command, press: Press) -> str:
        return await self._by_code(command, press, Approve())

    async def _deny(self, command: Command, press: Press) -> str:
        return await self._by_code(command, press, Deny(feedback=command.rest))

    async def _by_code(self, command: Command, press: Press, resolution: Resolution) -> str:
        """The code says which; without one, only a single open request can be meant."""
        code = command.words[0].casefold() if command.words else ""
        if code:
            found = await self._requests.by_code(code)
            records = [found] if found is not None else []
        else:
            records = await self._store.pendings(key=press.key)
        if not records:
            return notices.NOT_WAITING.format(code=code) if code else notices.NOTHING_WAITS
        if len(records) > 1:
            example, listed = f"`/{command.name} {records[0].pending.code}`", self._listing(records, press)
            return f"More than one request is open. Say which, like {example}:\n\n{listed}"
        click = Click(
            pending_id=records[0].id,
            resolution=resolution,
            actor=press.actor,
            name=press.body.get("author", ""),
            roles=await self._resolutions.standing(press.actor, records[0]),
            via=f"/{command.name}",
        )
        return (await self._resolutions.decide(click)).text

    async def _model(self, command: Command, press: Press) -> str:
        """Which model answers here; `NAME` chooses one for this session, `default` the agent's own again."""
        name = await self._current_agent(press.key)
        agent, view = self._agents.get(name), await self._store.session_of(press.key)
        if agent is None:
            return notices.NO_MODEL
        now = view.model if view is not None and view.model in self._models else agent.model
        if not command.words:
            return notices.model_text(now, agent.model, self._models)
        chosen = notices.chosen_model(" ".join(command.words), self._models)
        if chosen is None:
            return notices.no_such_model_text(" ".join(command.words), self._models)
        by, at = notices.person(press.actor, press.body.get("author", "")), self._clock.now()
        if view is None:
            fresh = await self._store.fresh_session(
                press.key, name, self._tenant_of(press.key), by, press.actor, at
            )
        session_id = view.id if view is not None else fresh.new_session_id
        await self._store.set_model(session_id, chosen, by, press.actor, at)
        busy = view is not None and view.status == "running"
        return notices.model_now_text(chosen or agent.model, busy=busy)

    async def _agent(self, command: Command, press: Press) -> str:
        if not command.words:
            current = await self._current_agent(press.key)
            return f"The agent here is {current}. There are: {', '.join(sorted(self._agents))}."
        name = command.words[0]
        if name not in self._agents:
            return f"There is no agent {name!r}. There are: {', '.join(sorted(self._agents))}."
        return f"{await self._fresh(press, name)} The agent is {name}."

    async def _pair(self, command: Command, press: Press) -> str:
        if not command.words:
            return "Which code? Write `/pair CODE`."
        admitted = await self._pairing.confirm(command.words[0], press.actor)
        if isinstance(admitted, str):
            return admitted
        await self.say(admitted.key, LET_IN)
        return f"{admitted.name} may talk to me now."

    async def _help(self, command: Command, press: Press) -> str:
        return help_text()


def _who(press: Press, via: str) -> Who:
    return Who(actor=press.actor, name=press.body.get("author", ""), via=via, key=press.key)
