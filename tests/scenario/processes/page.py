"""A caller of the HTTP API who tries again, with the same ids, when the gateway dies on the way."""

from __future__ import annotations

from typing import Any

import httpx

from tests.scenario.processes.gateway import GatewayProcess, until
from tests.scenario.processes.house import House

Json = dict[str, Any]


class Caller:
    """Talks to whichever gateway process of a house it was last pointed at."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._client: httpx.AsyncClient | None = None

    async def use(self, gateway: GatewayProcess) -> None:
        """From now on, speak to this process."""
        await self.close()
        self._client = await self.house.client(gateway)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def get(self, path: str) -> Json:
        assert self._client is not None
        answer = await self._client.get(path)
        assert answer.is_success, answer.text
        return answer.json()

    async def post(self, path: str, body: Json) -> Json | None:
        """The answer; None when the connection broke before there was one."""
        assert self._client is not None
        try:
            answer = await self._client.post(path, json=body)
        except httpx.TransportError:
            return None
        return {**answer.json(), "status_code": answer.status_code}

    async def say(self, text: str, message_id: str, session_id: str = "") -> Json | None:
        """Post one message under an id of ours."""
        more = {"session_id": session_id} if session_id else {}
        return await self.post("/agents/clerk/messages", {"text": text, "message_id": message_id, **more})

    async def resolve(self, pending_id: str, decision: str = "approve", **more: Any) -> Json | None:
        return await self.post(f"/pending-approvals/{pending_id}/resolve", {"decision": decision, **more})

    async def answer(self, pending_id: str, value: str) -> Json | None:
        return await self.post(f"/pending-questions/{pending_id}/answer", {"answer": value})

    async def pending(self) -> list[Json]:
        return (await self.get("/pending"))["pending"]

    async def waiting(self) -> Json:
        """Wait for something that waits for a decision."""

        async def found() -> list[Json]:
            return await self.pending()

        return (await until(found, "something waits for a decision"))[0]

    async def ended(self, session_id: str, status: str = "completed") -> Json:
        """Wait until a session has come to this end; the session."""

        async def found() -> Json | None:
            session = await self.get(f"/sessions/{session_id}")
            return session if session["status"] == status else None

        return await until(found, f"the session is {status}")
