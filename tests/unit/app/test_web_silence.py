"""An agent that chooses to say nothing, over HTTP: an empty text, no piece of the word, the log as it is."""

from __future__ import annotations

import asyncio

from tests.app_scene import House, running
from tests.silence import FIRST, TOKEN, Silent
from tests.sse import Frame, frames


async def test_c067_silence_is_an_empty_text_and_its_word_is_in_no_event(house: House) -> None:
    model = Silent()
    async with running(house, agent=house.agent(silence=TOKEN), model=model) as scene:
        path, got = "/agents/assistant/messages/stream", list[Frame]()
        async with scene.client.stream("POST", path, json={"text": "good night"}) as response:
            async for frame in frames(response):
                got.append(frame)
                if frame.type == "budget:check":
                    await model.begun()
                    model.let_go.set()
        assert [frame.type for frame in got] == ["session", "budget:check", "loop:done", "done"]
        assert not any(FIRST in str(frame.data) for frame in got)
        session_id = got[-1].data["session_id"]
        assert (got[-1].data["outcome"], got[-1].data["text"]) == ("completed", "")
        heard = (await scene.get(f"/sessions/{session_id}"))["messages"][-1]
        said = [{"type": "text", "text": f"{TOKEN}\n"}]
        assert heard == {"role": "assistant", "content": said, "silent": True}


async def test_c067_whoever_waits_is_told_that_it_is_over_also_after_a_restart(house: House) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    model.let_go.set()
    async with running(house, agent=agent, model=model) as scene:
        done = await scene.ask("good night", message_id="m1")
        assert (done["outcome"], done["text"], done["exit_code"]) == ("completed", "", 0)
        again = await scene.ask("hello", done["session_id"])
        assert again["text"] == "Hello."
    async with running(house, agent=agent, model=model) as scene:
        async with asyncio.timeout(30):
            told = await scene.ask("good night", message_id="m1")
        assert (told["turn_id"], told["text"]) == (done["turn_id"], "")
        assert "silent" not in (await scene.view(done["session_id"]))["messages"][-1]
