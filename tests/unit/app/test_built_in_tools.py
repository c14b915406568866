"""A gateway from a configuration file: skills and built-in tools as a page and its callers get them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app.people import ConfiguredRules
from gateway.messages import Json, ThreadKey
from tests.built_in_scene import PNG, from_file

PATIENCE = 15


@asynccontextmanager
async def caller(url: str, token: str = "") -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        yield client


async def ask(client: httpx.AsyncClient, text: str, session_id: str = "") -> str:
    """Say it and wait for the end of the turn; the session's id."""
    body = {"text": text, **({"session_id": session_id} if session_id else {})}
    response = await client.post("/agents/desk/messages?wait=1", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["outcome"] == "completed", response.text
    return str(response.json()["session_id"])


async def results(client: httpx.AsyncClient, session_id: str) -> list[str]:
    messages = (await client.get(f"/sessions/{session_id}")).json()["messages"]
    return [b["content"] for m in messages for b in m["content"] if b["type"] == "tool_result"]


async def page(client: httpx.AsyncClient, session_id: str) -> Json:
    return dict((await client.get(f"/sessions/{session_id}?html=1")).json())


async def test_a_skill_is_read_and_its_event_is_stored(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (gateway, url), caller(url) as client:
        agent = gateway.parts.agents["desk"]
        assert agent.system_prompt.endswith("- pay: Pay back.")
        session = await ask(client, "skill")
        assert await results(client, session) == ["Pay A-1."]
        turns = await gateway.store.turns_after(session, 0)
        assert '"skill:loaded"' in turns[0].events or "skill:loaded" in turns[0].events


async def test_a_file_that_was_sent_is_a_line_of_the_page_and_can_be_saved(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        session = await ask(client, "write")
        (notice,) = (await page(client, session))["notices"]
        assert (notice["text"], notice["file"]) == ("Here it is", "a b.html")
        address = f"/sessions/{session}/files/{notice['number']}"
        response = await client.get(address)
        assert response.status_code == 200 and response.text == "<script>alert(1)</script>"
        assert response.headers["content-type"] == "application/octet-stream"
        assert response.headers["content-disposition"].startswith("attachment;")
        assert "a%20b.html" in response.headers["content-disposition"]
        assert response.headers["x-content-type-options"] == "nosniff"
        for wrong in (f"/sessions/{session}/files/9999", f"/sessions/s_other/files/{notice['number']}"):
            assert (await client.get(wrong)).status_code == 404
        (path,) = (tmp_path / "var" / "sent").iterdir()
        path.unlink()
        assert (await client.get(address)).status_code == 404


async def test_files_and_pictures_that_a_tool_has_made_follow_its_answer_on_the_page(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        session = await ask(client, "draw")
        view = await page(client, session)
        assert [(notice["file"], notice["after"]) for notice in view["notices"]] == [
            ("7f.png", len(view["messages"])),
            ("a.csv", len(view["messages"])),
        ]
        numbers = [notice["number"] for notice in view["notices"]]
        contents = [(await client.get(f"/sessions/{session}/files/{n}")).content for n in numbers]
        assert contents == [PNG, b"1,2\n"]


async def test_a_file_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        session = await ask(client, "write")
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        (notice,) = (await page(client, session))["notices"]
        assert (await client.get(f"/sessions/{session}/files/{notice['number']}")).status_code == 200


async def test_without_its_token_nobody_gets_a_file(tmp_path: Path) -> None:
    async with from_file(tmp_path, 'token = { a = "token-of-a", b = "token-of-b" }') as (_gateway, url):
        async with caller(url, "token-of-a") as client:
            session = await ask(client, "write")
            (notice,) = (await page(client, session))["notices"]
        async with caller(url) as stranger:
            response = await stranger.get(f"/sessions/{session}/files/{notice['number']}")
            assert response.status_code == 401


async def test_where_several_come_in_a_conversation_shows_no_notes_of_another(tmp_path: Path) -> None:
    async with from_file(tmp_path, 'token = { a = "token-of-a", b = "token-of-b" }') as (gateway, url):
        assert not gateway.parts.rules.private(ThreadKey("web", "local", "c", ""))
        async with caller(url, "token-of-a") as client:
            await ask(client, "note")
            elsewhere = await results(client, await ask(client, "recall"))
            assert elsewhere == ["(1 more about this person, for a private conversation only)"]
        async with caller(url, "token-of-b") as client:
            assert await results(client, await ask(client, "recall")) == ["There are no notes."]


async def test_with_one_caller_every_conversation_is_private(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        await ask(client, "note")
        assert await results(client, await ask(client, "recall")) == ["k: secret"]


async def test_what_is_configured_for_http_fetch_holds(tmp_path: Path) -> None:
    async with from_file(tmp_path) as (_gateway, url), caller(url) as client:
        (told,) = await results(client, await ask(client, "fetch"))
        assert "not on the public internet" in told


@pytest.mark.parametrize(
    ("key", "private"),
    [
        (("telegram", "1", "456", ""), True),
        (("telegram", "1", "-100456", "7"), False),
        (("slack", "T1", "D1", "1.2"), True),
        (("slack", "T1", "C1", "1.2"), False),
        (("slack", "T1", "G1", ""), False),
        (("discord", "@me", "5", ""), True),
        (("discord", "9", "5", "6"), False),
        (("cli", "local", "c", ""), True),
        (("other", "", "", ""), False),
    ],
)
def test_a_thread_is_private_where_nobody_else_can_read_along(key: Any, private: bool) -> None:
    assert ConfiguredRules(default_agent="a").private(ThreadKey(*key)) is private
