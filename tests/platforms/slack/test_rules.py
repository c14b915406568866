"""The test server refuses what Slack refuses; otherwise the channel's tests would prove nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack import Json, SlackServer


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def client(server: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(token=server.app.bot_token, base_url=server.api_base, retry_handlers=[])


async def refused(client: AsyncWebClient, method: str, **arguments: Any) -> str:
    """The error code of a call that must be refused."""
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=arguments)
    return str(caught.value.response["error"])


def section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def button(label: str = "Go", **more: Any) -> Json:
    return {"type": "button", "text": {"type": "plain_text", "text": label}, "action_id": label, **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def options(count: int, length: int = 3) -> list[Json]:
    names = [f"{number:03d}".ljust(length, "x") for number in range(count)]
    return [{"text": {"type": "plain_text", "text": name}, "value": name} for name in names]


def select(**more: Any) -> Json:
    return {"type": "static_select", "action_id": "s", **more}


def rich(*elements: Json) -> Json:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": list(elements)}]}


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def confirm(title: str) -> Json:
    return {"title": plain(title), "text": plain("Really?"), "confirm": plain("Yes"), "deny": plain("No")}


# ---- tokens, scopes, names


async def test_tokens_are_checked(server: SlackServer) -> None:
    for token, error in (("", "not_authed"), ("xoxb-other", "invalid_auth")):
        client = AsyncWebClient(token=token, base_url=server.api_base)
        assert await refused(client, "users.info", user="U1") == error
    app = AsyncWebClient(token=server.app.app_token, base_url=server.api_base)
    assert await refused(app, "users.info", user="U1") == "not_allowed_token_type"
    bot = AsyncWebClient(token=server.app.bot_token, base_url=server.api_base)
    assert await refused(bot, "apps.connections.open") == "not_allowed_token_type"
    assert server.failures == []


async def test_a_missing_scope_is_named_by_kind_of_conversation(
    server: SlackServer, client: AsyncWebClient
) -> None:
    server.app.scopes -= {"chat:write", "groups:history"}
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="x")
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "chat:write"
    assert await refused(client, "conversations.history", channel="G1") == "missing_scope"
    assert (await client.conversations_history(channel="C1"))["messages"] == []
    granted = (await client.auth_test()).headers["x-oauth-scopes"].split(",")
    assert "chat:write" not in granted
    assert "users:read" in granted


async def test_unknown_methods_and_arguments_fail_the_test_that_used_them(
    server: SlackServer, client: AsyncWebClient
) -> None:
    assert await refused(client, "chat.shout", text="x") == "unknown_method"
    assert await refused(client, "chat.delete", channel="C1", ts="1.1", loudly=True) == "invalid_arguments"
    assert len(server.failures) == 2
    with pytest.raises(AssertionError, match="loudly"):
        server.check()


async def test_reading_methods_take_get_form_and_json_alike(
    server: SlackServer, client: AsyncWebClient
) -> None:
    for sent in (
        {"http_verb": "GET", "params": {"user": "U1"}},
        {"data": {"user": "U1"}},
        {"json": {"user": "U1"}},
    ):
        answer = await client.api_call("users.info", **sent)
        assert answer["user"]["name"] == "ada"


# ---- where messages may go


@pytest.mark.parametrize(
    ("channel", "error"),
    [("C9", "channel_not_found"), ("C3", "not_in_channel"), ("C4", "is_archived"), ("", "channel_not_found")],
)
async def test_a_message_goes_only_where_the_bot_may_post(
    client: AsyncWebClient, channel: str, error: str
) -> None:
    assert await refused(client, "chat.postMessage", channel=channel, text="x") == error


async def test_a_private_channel_without_the_bot_does_not_exist_for_it(
    server: SlackServer, client: AsyncWebClient
) -> None:
    server.kick_bot("G1")
    assert await refused(client, "chat.postMessage", channel="G1", text="x") == "channel_not_found"
    server.kick_bot("C1")
    assert await refused(client, "conversations.replies", channel="C1", ts="1.1") == "not_in_channel"
    await client.conversations_join(channel="C1")
    assert (await client.chat_postMessage(channel="C1", text="x"))["ok"]


async def test_a_user_id_is_that_persons_direct_message(client: AsyncWebClient) -> None:
    assert (await client.chat_postMessage(channel="U2", text="x"))["channel"] == "D2"
    assert (await client.conversations_open(users=["U1", "U2"]))["channel"]["id"] == "M1"
    assert await refused(client, "conversations.open", users="U99") == "user_not_found"


async def test_an_ephemeral_message_needs_a_member(server: SlackServer, client: AsyncWebClient) -> None:
    assert (
        await refused(client, "chat.postEphemeral", channel="C1", user="UX", text="x")
        == "user_not_in_channel"
    )
    await client.chat_postEphemeral(channel="C1", user="U2", text="psst")
    assert [entry["text"] for entry in server.ephemerals("U2")] == ["psst"]
    assert server.messages("C1") == []


async def test_only_own_messages_can_be_changed(server: SlackServer, client: AsyncWebClient) -> None:
    theirs = server.say("U1", "C1", "mine").ts
    assert await refused(client, "chat.update", channel="C1", ts=theirs, text="x") == "cant_update_message"
    assert await refused(client, "chat.delete", channel="C1", ts=theirs) == "cant_delete_message"
    assert await refused(client, "chat.update", channel="C1", ts="1.1", text="x") == "message_not_found"
    mine = (await client.chat_postMessage(channel="C1", text="x", blocks=[section("x")]))["ts"]
    assert await refused(client, "chat.update", channel="C1", ts=mine, text="x" * 4001) == "msg_too_long"
    await client.chat_update(channel="C1", ts=mine, text="words only")
    assert "blocks" not in server.message("C1", mine)
    await client.chat_delete(channel="C1", ts=mine)
    assert [message["text"] for message in server.messages("C1")] == ["mine"]


async def test_replies_go_to_threads_that_exist(server: SlackServer, client: AsyncWebClient) -> None:
    assert (
        await refused(client, "chat.postMessage", channel="C1", text="x", thread_ts="1.1")
        == "thread_not_found"
    )
    root = server.say("U1", "C1", "root").ts
    reply = (await client.chat_postMessage(channel="C1", text="a reply", thread_ts=root))["ts"]
    assert server.message("C1", root)["reply_count"] == 1
    assert [m["ts"] for m in (await client.conversations_history(channel="C1"))["messages"]] == [root]
    page = await client.conversations_replies(channel="C1", ts=root, limit=1)
    assert page["has_more"]
    rest = await client.conversations_replies(
        channel="C1", ts=root, cursor=page["response_metadata"]["next_cursor"]
    )
    assert [m["ts"] for m in rest["messages"]] == [reply]
    await client.chat_postMessage(channel="C1", text="x", thread_ts=reply)
    assert "is a reply" in server.failures[0]


# ---- what a message may hold


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([section("x" * 3001)], "less than 3001"),
        ([section("")], "more than 0"),
        ([{"type": "section"}], "missing required field: text"),
        ([section("x")] * 51, "no more than 50"),
        ([{"type": "section", "fields": [plain("x")] * 11}], "no more than 10"),
        ([{"type": "header", "text": plain("x" * 151)}], "less than 151"),
        ([{"type": "context", "elements": [plain("x")] * 11}], "no more than 10"),
        ([actions()], "no fewer than 1"),
        ([actions(*[button(str(n)) for n in range(26)])], "no more than 25"),
        ([actions(button("x" * 76))], "less than 76"),
        ([actions(button("Go", value="x" * 2001))], "less than 2001"),
        ([actions(button("Go", style="loud"))], "must be one of"),
        ([actions(button("Go", confirm=confirm("x" * 101)))], "less than 101"),
        ([actions(button("Go"), button("Go"))], "already exists"),
        ([actions(button("Go", action_id="x" * 256))], "less than 256"),
        ([actions(select(options=options(101)))], "no more than 100"),
        ([actions(select(options=options(2, 76)))], "less than 76"),
        ([actions(select(options=options(1) * 2))], "must be unique"),
        ([actions(select())], "either options or option_groups"),
        ([actions(select(options=options(2), initial_option=options(3)[2]))], "exactly match"),
        ([actions({"type": "overflow", "action_id": "o", "options": options(6)})], "no more than 5"),
        ([actions({"type": "checkboxes", "action_id": "c", "options": options(11)})], "no more than 10"),
        ([actions({"type": "plain_text_input", "action_id": "p"})], "unsupported type"),
        ([{**section("x"), "block_id": "b"}, {**section("y"), "block_id": "b"}], "already exists"),
        ([{**section("x"), "color": "red"}], "unsupported property: color"),
        ([{"type": "markdown", "text": "x" * 6001}, {"type": "markdown", "text": "x" * 6000}], "12001"),
        (
            [{"type": "input", "label": plain("x"), "element": {"type": "plain_text_input"}}],
            "unsupported type",
        ),
        ([{"type": "banner"}], "unsupported type: banner"),
        ([rich({"type": "text", "text": ""})], "more than 0"),
        ([rich({"type": "text", "text": "x", "style": {"blink": True}})], "unsupported property"),
        ([rich({"type": "link", "url": "javascript:1"})], "valid URL"),
        ([{"type": "image", "image_url": "https://x.example/1.png"}], "missing required field: alt_text"),
    ],
)
async def test_a_block_that_breaks_a_rule_is_refused_with_the_reason(
    client: AsyncWebClient, blocks: list[Json], words: str
) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="x", blocks=blocks)
    assert caught.value.response["error"] == "invalid_blocks"
    assert words in " ".join(caught.value.response["errors"])


async def test_the_limits_themselves_are_allowed(server: SlackServer, client: AsyncWebClient) -> None:
    code = {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x"}], "border": 0}
    listed = {"type": "rich_text_section", "elements": [{"type": "user", "user_id": "U1"}]}
    payloads: list[list[Json]] = [
        [section("x" * 3000)] * 4,
        [{"type": "divider"}] * 50,
        [actions(*[button(str(n), value="x", style="danger") for n in range(25)])],
        [actions(select(options=options(100), placeholder=plain("x" * 150)))],
        [actions({"type": "checkboxes", "action_id": "c", "options": options(10, 75)})],
        [{**section("x"), "expand": True, "accessory": button("x" * 75, confirm=confirm("x" * 100))}],
        [
            {
                "type": "rich_text",
                "elements": [code, {"type": "rich_text_list", "style": "bullet", "elements": [listed]}],
            }
        ],
        [{"type": "markdown", "text": "x" * 12000}],
        [{"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * 10}],
    ]
    for blocks in payloads:
        assert (await client.chat_postMessage(channel="C1", text="x", blocks=blocks))["ok"]
    server.check()


async def test_a_message_needs_words_and_not_too_many(server: SlackServer, client: AsyncWebClient) -> None:
    assert await refused(client, "chat.postMessage", channel="C1") == "no_text"
    both = await refused(client, "chat.postMessage", channel="C1", text="x", markdown_text="y")
    assert both == "markdown_text_conflict"
    assert (
        await refused(client, "chat.postMessage", channel="C1", markdown_text="x" * 12001) == "msg_too_long"
    )
    long = [section("x" * 3000)] * 5
    assert await refused(client, "chat.postMessage", channel="C1", blocks=long) == "msg_blocks_too_long"
    await client.chat_postMessage(channel="C1", text="x" * 40_001)
    assert "was cut" in server.failures[0]


@pytest.mark.parametrize(
    ("message", "who"),
    [
        ({"text": "<@U1> and <!channel>, <!subteam^S1|ops>"}, ["U1", "channel", "S1"]),
        ({"text": "&lt;@U1&gt; &lt;!channel&gt; @here @ada"}, []),
        ({"text": "@ada @channel", "link_names": True}, ["channel", "U1"]),
        ({"text": "x", "blocks": [section("<@U2> @here")]}, ["U2"]),
        (
            {"text": "<@U1>", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "@here"}}]},
            ["here"],
        ),
        ({"text": "x", "blocks": [rich({"type": "broadcast", "range": "everyone"})]}, ["everyone"]),
        ({"text": "x", "blocks": [rich({"type": "text", "text": "<@U1>"})]}, []),
        ({"text": "x", "blocks": [rich({"type": "usergroup", "usergroup_id": "S1"})]}, ["S1"]),
    ],
)
async def test_whom_a_message_notifies_is_seen(
    server: SlackServer, client: AsyncWebClient, message: Json, who: list[str]
) -> None:
    await client.api_call("chat.postMessage", json={"channel": "C1", **message})
    assert server.paged("C1") == who


async def test_an_edit_without_parse_none_makes_bare_names_live(
    server: SlackServer, client: AsyncWebClient
) -> None:
    ts = (await client.chat_postMessage(channel="C1", text="x"))["ts"]
    await client.chat_update(channel="C1", ts=ts, text="@here", parse="none")
    assert server.paged() == []
    await client.chat_update(channel="C1", ts=ts, text="@here")
    assert server.paged() == ["here"]


# ---- rates and prepared trouble


async def test_rates_are_kept_per_channel_and_per_method(server: SlackServer, client: AsyncWebClient) -> None:
    server.enforce_rates = True
    for _ in range(3):
        ts = (await client.chat_postMessage(channel="C1", text="x"))["ts"]
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="x")
    assert caught.value.response.status_code == 429
    assert 1 <= int(caught.value.response.headers["Retry-After"]) <= 4
    assert (await client.chat_postMessage(channel="C2", text="x"))["ok"]
    server.advance(4)
    assert (await client.chat_postMessage(channel="C1", text="x"))["ok"]
    for _ in range(50):
        await client.chat_update(channel="C1", ts=ts, text="x")
    assert await refused(client, "chat.update", channel="C1", ts=ts, text="x") == "ratelimited"


async def test_trouble_comes_as_prepared_before_or_after_the_work(
    server: SlackServer, client: AsyncWebClient
) -> None:
    server.fail_next("chat.postMessage", "restricted_action")
    assert await refused(client, "chat.postMessage", channel="C1", text="0") == "restricted_action"
    server.fail_next("chat.postMessage", 429, retry_after=7)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="0")
    assert caught.value.response.headers["Retry-After"] == "7"
    server.fail_next("chat.postMessage", 503)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="0")
    assert caught.value.response.status_code == 503
    server.fail_next("*", "drop")
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel="C1", text="0")
    assert server.messages("C1") == []
    server.fail_next("chat.postMessage", "drop", after=True)
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel="C1", text="1")
    assert [message["text"] for message in server.messages("C1")] == ["1"]


async def test_groups_and_people_are_told_as_slack_tells_them(
    server: SlackServer, client: AsyncWebClient
) -> None:
    server.group("S3", "gone", ["U1"], disabled=True)
    groups = (await client.usergroups_list(include_users=True))["usergroups"]
    assert {group["id"]: group["users"] for group in groups} == {"S1": ["U1", "U2"], "S2": []}
    assert (await client.usergroups_users_list(usergroup="S1"))["users"] == ["U1", "U2"]
    assert await refused(client, "usergroups.users.list", usergroup="S9") == "no_such_subteam"
    assert (await client.users_info(user="UG"))["user"]["is_restricted"] is True
    stranger = (await client.users_info(user="UX"))["user"]
    assert stranger["team_id"] == "T2"
    assert stranger["is_stranger"] is True
    assert await refused(client, "users.info", user="U77") == "user_not_found"
