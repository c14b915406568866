"""What people do reaches a real bolt app in Slack's shapes over either transport, and is answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.platforms.slack import Json, SlackServer
from tests.platforms.slack.driving import Listener


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture(params=["socket", "http"])
async def listener(server: SlackServer, request: pytest.FixtureRequest) -> AsyncIterator[Listener]:
    listener = Listener(server)
    async with contextlib.AsyncExitStack() as stack:
        if request.param == "http":
            server.deliver_to(await stack.enter_async_context(listener.listening()))
        else:
            await stack.enter_async_context(listener.connected(ping_interval=30))
        yield listener


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def options(*names: str) -> list[Json]:
    return [{"text": plain(name), "value": f"v1:{name}"} for name in names]


def button(label: str) -> Json:
    return {"type": "button", "text": plain(label), "action_id": f"press:{label}", "value": f"v1:{label}"}


CARD: list[Json] = [
    {"type": "section", "block_id": "words", "text": plain("Ship it?")},
    {
        "type": "actions",
        "block_id": "row",
        "elements": [
            button("Approve"),
            {"type": "checkboxes", "action_id": "boxes", "options": options("red", "green", "blue")},
            {"type": "static_select", "action_id": "pick", "options": options("now", "later")},
        ],
    },
]
MODAL: Json = {
    "type": "modal",
    "callback_id": "form",
    "private_metadata": "kept",
    "title": plain("Edit"),
    "submit": plain("Send"),
    "notify_on_close": True,
    "blocks": [
        {
            "type": "input",
            "block_id": "amount",
            "label": plain("Amount"),
            "element": {
                "type": "number_input",
                "is_decimal_allowed": False,
                "action_id": "v",
                "min_value": "1",
            },
        },
        {
            "type": "input",
            "block_id": "why",
            "optional": True,
            "label": plain("Why"),
            "element": {"type": "plain_text_input", "action_id": "v", "initial_value": "because"},
        },
        {
            "type": "input",
            "block_id": "speed",
            "label": plain("Speed"),
            "element": {"type": "static_select", "action_id": "v", "options": options("slow", "fast")},
        },
    ],
}


async def card(listener: Listener, channel: str = "C1", **more: Any) -> str:
    answer = await listener.client.chat_postMessage(channel=channel, text="card", blocks=CARD, **more)
    await listener.server.settled()
    listener.got.clear()
    return str(answer["ts"])


async def test_a_press_carries_message_state_and_where_to_answer(
    server: SlackServer, listener: Listener
) -> None:
    root = server.say("U1", "C1", "root").ts
    ts = await card(listener, thread_ts=root)
    await server.choose("U1", "C1", ts, ["red", "blue"]).taken()
    await server.press("U1", "C1", ts, "later").taken()
    await server.press("U1", "C1", ts, "Approve").taken()
    body = listener.got[-1]
    assert body["actions"][0]["value"] == "v1:Approve"
    assert body["container"] == {
        "type": "message",
        "message_ts": ts,
        "channel_id": "C1",
        "is_ephemeral": False,
        "thread_ts": root,
    }
    row = body["state"]["values"]["row"]
    assert [option["value"] for option in row["boxes"]["selected_options"]] == ["v1:red", "v1:blue"]
    assert row["pick"]["selected_option"]["value"] == "v1:later"
    assert body["message"]["ts"] == ts
    assert (body["user"]["id"], body["team"]["id"]) == ("U1", "T1")
    server.check()


async def test_a_button_that_was_taken_away_cannot_be_pressed(
    server: SlackServer, listener: Listener
) -> None:
    ts = await card(listener)
    assert server.labels("C1", ts) == ["Approve", "red", "green", "blue", "now", "later"]
    await listener.client.chat_update(channel="C1", ts=ts, text="done", blocks=CARD[:1])
    with pytest.raises(AssertionError, match="nothing here says 'Approve'"):
        server.press("U1", "C1", ts, "Approve")
    assert server.shown("C1", ts) == "Ship it?"


async def test_a_modal_is_filled_refused_with_errors_and_closed(
    server: SlackServer, listener: Listener
) -> None:
    async def open_modal(body: Json) -> None:
        await listener.client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    async def judge(body: Json) -> Json | None:
        amount = int(body["view"]["state"]["values"]["amount"]["v"]["value"])
        return {"response_action": "errors", "errors": {"amount": "too much"}} if amount > 9 else None

    listener.answers |= {"block_actions": open_modal, "view_submission": judge}
    ts = await card(listener)
    await server.press("U1", "C1", ts, "Approve").taken()
    await server.wait_view("U1")
    unfinished = await server.submit_view("U1", {"Amount": "2.5"})
    assert unfinished.outcome == "refused"
    assert set(unfinished.errors) == {"amount", "speed"}
    wrong = await server.submit_view("U1", {"Amount": "10", "Speed": "fast"})
    assert (wrong.outcome, wrong.errors) == ("errors", {"amount": "too much"})
    assert server.view("U1") is not None
    right = await server.submit_view("U1", {"amount": "3"})
    assert right.outcome == "closed"
    assert server.view("U1") is None
    view = listener.of("view_submission")[-1]["view"]
    assert view["private_metadata"] == "kept"
    assert view["state"]["values"]["why"]["v"]["value"] == "because"
    assert view["state"]["values"]["speed"]["v"]["selected_option"]["value"] == "v1:fast"
    server.check()


async def test_a_trigger_is_good_once_and_for_three_seconds(server: SlackServer, listener: Listener) -> None:
    ts = await card(listener)
    triggers = []
    for _ in range(2):
        await server.press("U1", "C1", ts, "Approve").taken()
        triggers.append(listener.got[-1]["trigger_id"])
    await listener.client.views_open(trigger_id=triggers[0], view=MODAL)
    with pytest.raises(SlackApiError) as used:
        await listener.client.views_open(trigger_id=triggers[0], view=MODAL)
    assert used.value.response["error"] == "exchanged_trigger_id"
    server.advance(3.1)
    with pytest.raises(SlackApiError) as late:
        await listener.client.views_open(trigger_id=triggers[1], view=MODAL)
    assert late.value.response["error"] == "expired_trigger_id"
    await asyncio.gather(*[delivery.taken() for delivery in server.close_view("U1")])
    assert listener.of("view_closed")[0]["is_cleared"] is False


async def test_a_modal_that_breaks_a_rule_is_refused(server: SlackServer, listener: Listener) -> None:
    ts = await card(listener)
    await server.press("U1", "C1", ts, "Approve").taken()
    trigger = listener.got[-1]["trigger_id"]
    changes: list[Json] = [
        {"title": plain("x" * 25)},
        {"submit": None},
        {"private_metadata": "x" * 3001},
        {"blocks": []},
    ]
    for change in changes:
        view = {name: value for name, value in {**MODAL, **change}.items() if value is not None}
        with pytest.raises(SlackApiError) as caught:
            await listener.client.views_open(trigger_id=trigger, view=view)
        assert caught.value.response["error"] == "invalid_arguments"
    assert (await listener.client.views_open(trigger_id=trigger, view=MODAL))["ok"]


async def test_the_home_is_published_pressed_and_guarded_by_its_hash(
    server: SlackServer, listener: Listener
) -> None:
    await asyncio.gather(*[delivery.taken() for delivery in server.open_home("U1")])
    assert listener.got[0]["event"]["tab"] == "home"
    view = {"type": "home", "blocks": CARD}
    first = (await listener.client.views_publish(user_id="U1", view=view))["view"]
    await server.press_home("U1", "Approve").taken()
    body = listener.of("block_actions")[-1]
    assert body["container"] == {"type": "view", "view_id": first["id"]}
    assert body["view"]["type"] == "home"
    assert "message" not in body
    await listener.client.views_publish(user_id="U1", view=view, hash=first["hash"])
    with pytest.raises(SlackApiError) as caught:
        await listener.client.views_publish(user_id="U1", view=view, hash=first["hash"])
    assert caught.value.response["error"] == "hash_conflict"


async def test_a_command_is_answered_by_its_url_five_times(server: SlackServer, listener: Listener) -> None:
    delivery = await server.slash("U2", "C1", "status all").taken()
    body = listener.got[0]
    assert (body["command"], body["text"], body["channel_id"]) == ("/threadgate", "status all", "C1")
    hook = AsyncWebhookClient(body["response_url"])
    for number in range(5):
        assert (await hook.send(text=f"answer {number}")).status_code == 200
    assert (await hook.send(text="one too many")).status_code == 404
    assert len(server.ephemerals("U2")) == 5
    late = await server.slash("U2", "C1", "again").taken()
    server.advance(1801)
    assert (await AsyncWebhookClient(late.payload["response_url"]).send(text="x")).status_code == 404
    assert delivery.acked
    assert server.messages("C1") == []


async def test_an_ephemeral_card_is_pressed_and_replaced(server: SlackServer, listener: Listener) -> None:
    answer = await listener.client.chat_postEphemeral(channel="C1", user="U2", text="card", blocks=CARD)
    await server.press("U2", "C1", answer["message_ts"], "Approve").taken()
    body = listener.got[-1]
    assert body["container"]["is_ephemeral"] is True
    assert "message" not in body
    await AsyncWebhookClient(body["response_url"]).send(text="done", replace_original=True)
    assert [entry["text"] for entry in server.ephemerals("U2")] == ["done"]


async def test_a_shortcut_carries_the_message(server: SlackServer, listener: Listener) -> None:
    said = await server.say("U2", "C1", "look at this").taken()
    await server.shortcut("U1", "C1", said.ts).taken()
    body = listener.of("message_action")[0]
    assert (body["callback_id"], body["message_ts"]) == ("ask_about", said.ts)
    assert body["message"]["text"] == "look at this"


async def test_edits_deletions_and_files_come_as_subtypes(server: SlackServer, listener: Listener) -> None:
    said = await server.say("U1", "D1", "frist").taken()
    await server.edit("U1", "D1", said.ts, "first").taken()
    await server.touch("D1", said.ts, attachments=[{"text": "a preview"}]).taken()
    await server.delete("U1", "D1", said.ts).taken()
    await server.say("U1", "D1", "see", files=[("a.txt", b"hello")]).taken()
    events = [body["event"] for body in listener.got]
    kinds = [event.get("subtype") for event in events]
    assert kinds == [None, "message_changed", "message_changed", "message_deleted", "file_share"]
    assert events[1]["message"]["edited"]["user"] == "U1"
    assert events[1]["previous_message"]["text"] == "frist"
    assert events[2]["message"]["text"] == events[2]["previous_message"]["text"]
    assert events[3]["deleted_ts"] == said.ts
    assert events[4]["files"][0]["size"] == 5


async def test_a_reply_to_the_channel_and_a_deleted_root_look_like_slacks(
    server: SlackServer, listener: Listener
) -> None:
    root = await server.say("U1", "C1", "root").taken()
    await server.say("U2", "C1", "all see this", root.ts, broadcast=True).taken()
    await server.delete("U1", "C1", root.ts).taken()
    broadcast, tombstone = (body["event"] for body in listener.got[1:])
    assert (broadcast["subtype"], broadcast["root"]["ts"]) == ("thread_broadcast", root.ts)
    assert tombstone["message"]["subtype"] == "tombstone"
    assert [message["text"] for message in server.thread("C1", root.ts)] == ["all see this"]


async def test_people_of_another_workspace_carry_their_own_team(
    server: SlackServer, listener: Listener
) -> None:
    await server.say("UX", "CX", "<@UBOT> hi").taken()
    body = listener.of("message")[0]
    assert (body["team_id"], body["event"]["user_team"], body["is_ext_shared_channel"]) == ("T1", "T2", True)
    ts = await card(listener, "CX")
    await server.press("UX", "CX", ts, "Approve").taken()
    assert listener.got[-1]["user"]["team_id"] == "T2"
    with pytest.raises(AssertionError):
        server.slash("UX", "CX", "status")


async def test_the_same_message_comes_again_under_a_new_event_id(
    server: SlackServer, listener: Listener
) -> None:
    said = await server.say("U1", "D1", "x").taken()
    for delivery in server.redeliver(said):
        await delivery.taken()
    await server.resend(said.deliveries[0], retry=2).taken()
    ids = [body["event_id"] for body in listener.got]
    assert ids[0] == ids[2] != ids[1]
    assert len({body["event"]["ts"] for body in listener.got}) == 1


async def test_an_assistant_thread_has_a_title_prompts_and_a_status_that_fades(
    server: SlackServer, listener: Listener
) -> None:
    opened = await server.open_assistant("U1").taken()
    thread = listener.of("assistant_thread_started")[0]["event"]["assistant_thread"]
    assert (thread["channel_id"], thread["thread_ts"]) == (opened.channel, opened.ts)
    place: Any = {"channel_id": opened.channel, "thread_ts": opened.ts}
    await listener.client.assistant_threads_setTitle(**place, title="Refunds")
    await listener.client.assistant_threads_setSuggestedPrompts(
        **place, prompts=[{"title": "Hi", "message": "hi"}]
    )
    await listener.client.assistant_threads_setStatus(**place, status="thinks")
    assert server.assistant(opened.channel, opened.ts).title == "Refunds"
    assert server.status(opened.channel, opened.ts) == "thinks"
    server.advance(121)
    assert server.status(opened.channel, opened.ts) == ""
    with pytest.raises(SlackApiError) as caught:
        await listener.client.assistant_threads_setStatus(
            channel_id=opened.channel, thread_ts="1.1", status="x"
        )
    assert caught.value.response["error"] == "invalid_thread_ts"
    await server.say("U1", opened.channel, "hello", opened.ts).taken()
    assert listener.got[-1]["event"]["thread_ts"] == opened.ts


async def test_modals_are_stacked_three_deep_and_replaced_by_their_hash(
    server: SlackServer, listener: Listener
) -> None:
    async def push(body: Json) -> Json:
        return {"response_action": "push", "view": MODAL}

    listener.answers["view_submission"] = push
    ts = await card(listener)
    await server.press("U1", "C1", ts, "Approve").taken()
    opened = await listener.client.views_open(trigger_id=listener.got[-1]["trigger_id"], view=MODAL)
    for _ in range(2):
        assert (await server.submit_view("U1", {"Amount": "1", "Speed": "slow"})).outcome == "pushed"
    assert [view["root_view_id"] for view in server.views["U1"]] == [opened["view"]["id"]] * 3
    top = server.views["U1"][-1]
    await listener.client.views_update(view_id=top["id"], hash=top["hash"], view=MODAL)
    with pytest.raises(SlackApiError) as caught:
        await listener.client.views_update(view_id=top["id"], hash="old", view=MODAL)
    assert caught.value.response["error"] == "hash_conflict"
    server.close_view("U1")
    assert len(server.views["U1"]) == 2


async def test_an_outage_ends_on_the_same_port_and_calls_can_be_held(
    server: SlackServer, listener: Listener
) -> None:
    port = server.port
    await server.down()
    with pytest.raises(aiohttp.ClientError):
        await listener.client.chat_postMessage(channel="C1", text="lost")
    await server.up()
    assert server.port == port
    async with server.held("chat.postMessage") as held:
        posting = asyncio.create_task(listener.client.chat_postMessage(channel="C1", text="later"))
        await server.wait_for(lambda: held.waiting == 1)
        assert server.messages("C1") == []
    assert (await posting)["ok"]
    assert len(await server.wait_messages("C1", 1)) == 1
