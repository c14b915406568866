"""Answers commands, and says what the gateway itself has to say in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from gateway import notices
from gateway.agent import Agent
from gateway.approvals import Approve, Deny, Resolution
from gateway.clock import Clock
from gateway.commands import Command, help_text
from gateway.messages import Json, ThreadKey
from gateway.pairing import LET_IN, Pairing
from gateway.requests import Requests, Who
from gateway.resolutions import MOST_LOOKED_AT, Click, Resolutions
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
    ) -> None:
        self._store, self._turns, self._resolutions = store, turns, resolutions
        self._agents, self._agent_of, self._clock = agents, agent_of, clock
        self._on_deliveries, self._tenant_of, self._pairing = on_deliveries, tenant_of, pairing
        self._requests = requests
        self._answers: dict[str, Callable[[Command, Press], Awaitable[str]]] = {
            "new": self._new,
            "stop": self._stop,
            "status": self._status,
            "pending": self._pending,
            "grants": self._grants,
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
        return f"A fresh conversation begins here.{closed}"

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
        return f"Agent {view.agent}: {state}.{queued} {view.log_length} messages so far."

    async def _pending(self, command: Command, press: Press) -> str:
        match command.words:
            case ():
                return await self._waits_here(press)
            case ("mine",):
                records = await self._resolutions.waiting(press.actor, MOST_LOOKED_AT)
                return self._listing(records, press) or notices.NOTHING_IS_YOURS
            case ("all",):
                everything = await self._requests.everything(press.actor)
                if everything is None:
                    return notices.NOT_ALL
                return self._listing(everything, press) or notices.NOTHING_AT_ALL
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
        return self._listing(records, press) or notices.NOTHING_WAITS

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
        agent = self._agents.get(await self._current_agent(press.key))
        return f"The model here is {agent.model}." if agent is not None else "No model is configured here."

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
