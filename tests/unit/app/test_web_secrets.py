"""What is secret is masked on every way out, whatever became of the call."""

from __future__ import annotations

import pytest

from gateway.gate import Rule
from gateway.tools.base import MASK, tool
from tests.app_scene import SECRET, House, Scene, running
from tests.sse import frames, upto


async def everything(scene: Scene, session_id: str) -> str:
    """All that HTTP tells about a session, as one text."""
    paths = [
        f"/sessions/{session_id}",
        f"/sessions/{session_id}?html=1",
        "/sessions",
        "/pending",
        "/audit",
    ]
    texts = [(await scene.client.get(path)).text for path in paths]
    async with scene.client.stream("GET", f"/sessions/{session_id}/events") as response:
        texts.append(str(await upto(frames(response), "done")))
    return "\n".join(texts)


@pytest.mark.parametrize("decision", ["none", "approve", "edit", "deny"])
async def test_a_secret_argument_is_nowhere_before_and_after_a_decision(scene: Scene, decision: str) -> None:
    stopped = await scene.ask("pay A-1 30")
    session_id, pending_id = stopped["session_id"], stopped["pending"][0]
    answers = ""
    if decision == "edit":
        answers = str(await scene.resolve(pending_id, edited_args={"order": "A-1", "amount": 5}))
    elif decision != "none":
        answers = str(await scene.resolve(pending_id, decision))
    if decision != "none":
        await scene.until(session_id, lambda view: view["status"] in ("completed", "denied"))
    told = await everything(scene, session_id) + answers
    assert SECRET not in told
    assert MASK in told


async def test_the_authors_preview_cannot_give_a_secret_away(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    (card,) = (await scene.view(stopped["session_id"]))["cards"]
    assert card["preview"] == f"with {MASK} to A-1"


async def test_what_a_rule_redacts_is_masked_even_where_the_call_was_allowed(house: House) -> None:
    free = Rule(tool="p*", decision="allow", redact=("order",))
    async with running(house, agent=house.agent(rules=(free,))) as scene:
        done = await scene.ask("peek A-777")
        assert house.peeked == ["A-777"]
        view = await scene.view(done["session_id"])
        (call,) = [b for m in view["messages"] for b in m["content"] if b["type"] == "tool_use"]
        assert call["input"] == {"order": MASK}


async def test_arguments_of_a_tool_that_is_gone_are_masked_because_nobody_knows_what_was_secret(
    house: House,
) -> None:
    free = Rule(tool="pay", decision="allow")
    async with running(house, agent=house.agent(rules=(free,))) as scene:
        done = await scene.ask("pay A-1 30")
        assert done["outcome"] == "completed"
    async with running(house, agent=house.agent(tools=())) as scene:
        assert SECRET not in await everything(scene, done["session_id"])


async def test_a_secret_deep_inside_is_masked_where_its_rule_says(house: House) -> None:
    @tool
    async def send(body: dict[str, str]) -> str:
        """Send."""
        return f"sent by {body['user']}"

    asked = Rule(tool="send", decision="ask", redact=("body.password",))
    async with running(house, agent=house.agent(tools=(send,), rules=(asked,))) as scene:
        stopped = await scene.ask("deep")
        (card,) = (await scene.view(stopped["session_id"]))["cards"]
        assert card["args"] == {"body": {"user": "robin", "password": MASK}}
        await scene.resolve(stopped["pending"][0])
        await scene.until(stopped["session_id"], lambda view: view["status"] == "completed")
        assert SECRET not in await everything(scene, stopped["session_id"])
