"""What the page is told: rendered answers, inert arguments, and only what is new."""

from __future__ import annotations

import json

import httpx
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Channel
from channels.web.adapter import WebChannel
from channels.web.backend import Json, Notice, Option, SessionView
from channels.web.guard import Credentials
from channels.web.render import fields, page_card, page_message, page_session
from channels.web.wire import AnswerBody, ApiError, MessageBody, ResolveBody, decode
from tests.web_backend import MemoryBackend
from tests.web_scripts import question

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_only_what_a_model_wrote_is_rendered() -> None:
    text = {"type": "text", "text": "**bold** <i>x</i>"}
    (answer,) = page_message({"role": "assistant", "content": [text]})["content"]
    assert answer["html"] == "<p><strong>bold</strong> &lt;i&gt;x&lt;/i&gt;</p>"
    (question_,) = page_message({"role": "user", "content": [text]})["content"]
    assert question_ == text


def test_no_block_brings_its_own_markup() -> None:
    forged = {"type": "text", "text": "x", "html": "<script>", "opaque": {"signature": "s"}}
    (user,) = page_message({"role": "user", "content": [forged]})["content"]
    assert user == {"type": "text", "text": "x"}
    (model,) = page_message({"role": "assistant", "content": [forged]})["content"]
    assert model == {"type": "text", "text": "x", "html": "<p>x</p>"}


def test_a_text_too_long_to_render_is_shown_as_it_is() -> None:
    (block,) = page_message({"role": "assistant", "content": [{"type": "text", "text": "x" * 200_001}]})[
        "content"
    ]
    assert "html" not in block


async def test_only_the_new_messages_are_sent_again(client: httpx.AsyncClient) -> None:
    session_id = ""
    for text in ("one", "two"):
        body = {"text": text, **({"session_id": session_id} if session_id else {})}
        session_id = (await client.post("/agents/assistant/messages?wait=1", json=body)).json()["session_id"]
    rest = (await client.get(f"/sessions/{session_id}?html=1&from=3")).json()
    assert (rest["from"], rest["total"]) == (3, 4)
    assert [message["role"] for message in rest["messages"]] == ["assistant"]
    beyond = (await client.get(f"/sessions/{session_id}?html=1&from=9")).json()
    assert (beyond["from"], beyond["total"], beyond["messages"]) == (4, 4, [])


async def test_a_growing_answer_is_rendered_as_safely_as_a_whole_one(client: httpx.AsyncClient) -> None:
    text = "**bold** <script>x</script> [y](javascript:alert(1))\n\n```py\nprint("
    html = (await client.post("/page/render", json={"text": text})).json()["html"]
    assert "<strong>bold</strong>" in html
    assert "<script" not in html
    assert "href" not in html
    assert "<pre>" in html


def test_notices_of_the_gateway_are_in_the_view() -> None:
    view = SessionView(session_id="s", agent="a", status="idle", messages=[], notices=[Notice(text="hi")])
    assert page_session(view)["notices"][0]["text"] == "hi"


def test_a_notice_is_drawn_like_an_answer_and_as_safely() -> None:
    text = "I understand:\n\n- `/new`\n- <script>x</script>"
    view = SessionView(session_id="s", agent="a", status="idle", messages=[], notices=[Notice(text=text)])
    html = page_session(view)["notices"][0]["html"]
    assert "<li><code>/new</code></li>" in html.replace("\n", "")
    assert "<script" not in html


async def test_the_page_gets_more_than_programs_do(client: httpx.AsyncClient) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "refund 25"})).json()
    body = (await client.get(f"/sessions/{posted['session_id']}?html=1")).json()
    assert body["last_event_id"]
    (card,) = body["cards"]
    ledger = next(row for row in card["fields"] if row["key"] == "ledger")
    assert ledger["raw"] == "12345678901234567890"
    assert [call["state"] for call in body["calls"]] == ["done"]


def test_labels_of_options_hide_nothing_and_answer_with_their_own_value() -> None:
    card = question(1, "s", "a", 0.0, many=False, free=False)
    sly = Option(label="pro\u200bd", value="pro\u200bd")
    body = page_card(type(card)(**{**{n: getattr(card, n) for n in card.__slots__}, "options": (sly,)}))
    assert body["options"] == [{"label": "pro\\u{200B}d", "value": "pro\u200bd", "description": ""}]


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_every_argument_is_there_and_can_be_sent_back_unchanged(args: Json) -> None:
    rows = fields(args)
    assert [row["key"] for row in rows] == list(args)
    for row, value in zip(rows, args.values(), strict=True):
        assert row["raw"] == value if isinstance(value, str) else json.loads(row["raw"]) == value
        assert row["size"] == len(row["raw"])
        assert not {"\u200b", "\u202e", "\x00", "\x1b"} & set(row["value"])


@given(st.binary(max_size=200) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_body_is_more_than_a_refusal(body: bytes) -> None:
    for kind in (MessageBody, ResolveBody, AnswerBody):
        try:
            decoded = decode(kind, body)
        except ApiError as error:
            assert error.status in (400, 422)
        else:
            assert isinstance(decoded, kind)


@given(st.text())
def test_no_made_up_cookie_opens_the_door(cookie: str) -> None:
    credentials = Credentials({"alice": "one"}, cookie="c")
    assert credentials.bearer(cookie) is None
    assert credentials.bearer(f"alice.1.{cookie}") is None
    assert credentials.bearer(credentials.grant("alice")) == "alice"


def test_it_is_a_channel(backend: MemoryBackend) -> None:
    channel: Channel = WebChannel(backend)
    assert channel.name == "web"
    assert channel.abilities.forms
