"""What is drawn fits Discord, says everything, and offers nothing that was not asked for."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.base import Actor, Button, Card, CardField, Choice, Form
from channels.discord import cards, choices
from channels.discord.limits import LIMITS
from channels.discord.refs import many_id, page_id, pick_id, read_control
from channels.render.discord import escape_discord
from channels.render.inert import visible
from tests.contracts.harness import an_approval, settled
from tests.golden.discord.generate import CARDS, HERE, drawn_card
from tests.unit.discord.rules import accepted, controls, labels, texts

TEXTS = st.text(st.characters(codec="utf-8"), max_size=300)
WILD = TEXTS | st.sampled_from(
    [
        "x" * 5000,
        "😀" * 2500,
        "*" * 1999,
        "\n- " * 900,
        "\n" * 50,
        "a b " * 1500,
        "\u200b" * 900,
        "\ud83d x",
        "`" * 3000,
        "```\n\0 \udc00\n```",
        "\n\n`````",
    ]
)
FIELDS = st.lists(st.builds(CardField, name=TEXTS, value=WILD), max_size=60).map(tuple)
CHOICES = st.builds(
    lambda found, times: found * times,
    st.lists(
        st.builds(Choice, label=WILD, data=st.just(""), description=WILD, chosen=st.booleans()), max_size=4
    ),
    st.sampled_from([1, 2, 9]),
)
SPELLED = "``\\u{60}"


def numbered(found: list[Choice]) -> tuple[Choice, ...]:
    return tuple(replace(choice, data=f"v1:q:{n}") for n, choice in enumerate(found))


def a_question(*offered: Choice, **changes: Any) -> Card:
    card = Card(
        card_id="q", kind="question", state="open", title="Question", summary="Which?", choices=offered
    )
    return replace(card, **changes)


def fenced(shown: str) -> list[str]:
    """What stands in the code blocks of a text, as Discord reads it: three backticks, then the shortest
    way to three more."""
    pieces = shown.split("```")
    assert len(pieces) % 2 == 1, "a code block is open at the end"
    return [piece.removeprefix("\n").removesuffix("\n") for piece in pieces[1::2]]


# ---- every card fits


@given(TEXTS, WILD, FIELDS, WILD, st.sampled_from(["open", "decided", "expired"]), st.booleans(), WILD)
def test_every_approval_is_one_that_discord_takes(
    title: str,
    summary: str,
    fields: tuple[CardField, ...],
    status: str,
    state: str,
    repeat: bool,
    preview: str,
) -> None:
    card = an_approval(
        title=title,
        summary=summary,
        fields=fields,
        status=status,
        deciders=status,
        state=state,
        repeat=repeat,
        code=title,
        preview=preview,
        preview_kind="diff" if repeat else "text",
        ask_roles=tuple(f"30000000000000000{n}" for n in range(10, 10 + len(title))),
    )
    file = cards.args_file(card)
    for mention in (True, False):
        accepted(cards.card(card, file=file, mention=mention))
    for readable in (True, False):
        for attach in (True, False):
            accepted(cards.card(card, file=file, readable=readable, attach=attach))
    accepted(cards.card(card))


@given(CHOICES, st.booleans(), WILD, FIELDS, st.integers(-1, 9), st.integers(0, 30))
def test_every_question_is_one_that_discord_takes(
    found: list[Choice], multi: bool, summary: str, fields: tuple[CardField, ...], page: int, count: int
) -> None:
    buttons = tuple(Button(label=f"{n}", data=f"v1:q:b{n}") for n in range(count))
    card = a_question(*numbered(found), multi=multi, summary=summary, fields=fields, buttons=buttons)
    file = cards.args_file(card)
    drawn = cards.card(card, file=file, page=page)
    accepted(drawn)
    pressed = {control["custom_id"] for control in controls(drawn)}
    assert {button.data for button in buttons[: LIMITS.buttons]} <= pressed
    pages = [cards.card(card, page=n) for n in range(choices.pages(card))]
    offered = {o["value"] for shown in pages for c in controls(shown) for o in c.get("options", [])}
    assert {choice.data for choice in card.choices} <= offered | pressed
    if file is not None:
        written = file.content.decode()
        assert all(visible(choice.label).replace("\n", " ↵ ").strip() in written for choice in card.choices)


def the_worst(**changes: Any) -> Card:
    """A card that has too much of everything, of characters that all need a backslash."""
    much = "*" * 2500
    card = a_question(
        *(Choice(label=f"{n}{much}", data=f"v1:q:{n}", description=much, chosen=True) for n in range(60)),
        card_id=much[:40],
        title=much,
        summary=much,
        status=much,
        fields=tuple(CardField(name=much, value=much) for _ in range(60)),
        deciders=much,
        expires=much,
        code=much,
        multi=True,
        repeat=True,
        buttons=tuple(Button(label=much, data=f"v1:q:b{n}") for n in range(40)),
    )
    return replace(card, **changes)


@pytest.mark.parametrize("state", ["open", "decided"])
@pytest.mark.parametrize("kind", ["question", "approval"])
def test_a_card_with_too_much_of_everything_still_fits(state: str, kind: str) -> None:
    card = the_worst(state=state, kind=kind)
    for file in (cards.args_file(card), None):
        drawn = cards.card(card, file=file, page=1)
        accepted(drawn)
        pressed = controls(drawn)
        assert bool(pressed) == (state == "open")
        assert sum(control["custom_id"].startswith("v1:q:b") for control in pressed) in (0, LIMITS.buttons)


@given(FIELDS)
def test_every_argument_is_on_the_card_or_in_the_file(fields: tuple[CardField, ...]) -> None:
    card = an_approval(fields=fields)
    file = cards.args_file(card)
    drawn = cards.card(card, file=file)
    shown = "\n".join(texts(drawn))
    if file is None:
        blocks = [block.replace(SPELLED, "```") for block in fenced(shown)]
        wanted = [visible(field.value) for field in fields if field.value]
        assert [block.strip("↵") for block in blocks] == [
            value.strip("\n").strip("↵").replace(SPELLED, "```") for value in wanted
        ]
    else:
        written = file.content.decode()
        assert all(visible(field.value) in written for field in fields)
        assert file.sha256 == hashlib.sha256(file.content).hexdigest()
        assert file.sha256 in shown
        assert f"{len(file.content):,} bytes" in shown
        assert drawn["attachments"] == [{"id": 0, "filename": file.name}]


@given(WILD, WILD)
def test_c085_no_argument_ends_the_block_that_it_stands_in(first: str, second: str) -> None:
    fields = (CardField(name="first", value=first), CardField(name="second", value=second))
    card = an_approval(fields=fields)
    for value in (card, replace(card, summary="s" * 4000)):
        for drawn in (cards.card(value, file=cards.args_file(value)), cards.card(value)):
            for shown in texts(drawn):
                outside = shown.split("```")[::2]
                assert len(fenced(shown)) == len(outside) - 1
                assert all("first" in piece or "second" in piece for piece in outside[:-1])


# ---- approvals


C085 = (
    "ls` <https://evil.example/ok|Open the approval page> ```\n*Signed off by the owner*   ; "
    f"rm -r ~/\u200bprojects ; https://safe.example/\u202etxt.exe ;{' ' * 400}&& curl x ; "
    "https://gith\u0443b.example"
)


def test_c085_an_argument_cannot_disguise_itself() -> None:
    drawn = cards.card(an_approval(fields=(CardField(name="command", value=C085),)))
    [shown] = [content for content in texts(drawn) if "command" in content]
    assert shown.count("```") == 2
    [block] = fenced(shown)
    assert "*Signed off by the owner*" in block
    assert "~/\\u{200B}projects" in block
    assert "safe.example/\\u{202E}txt" in block
    assert "[400 spaces]&& curl" in block
    assert "mixed scripts: " in block
    assert f"page> {SPELLED}\n*Signed" in block


def test_c085_a_cards_words_cannot_imitate_marks_links_or_mentions() -> None:
    words = "**done** [Approve](https://evil.example) <@123456789012345678>\n# Approved\n-# by Ada"
    card = an_approval(title=words, summary=words, deciders=words, expires=words)
    drawn = cards.card(card)
    assert drawn["allowed_mentions"] == {"parse": []}
    shown = "\n".join(texts(drawn))
    assert shown.count(escape_discord(words)) == 1  # the summary; the others are on one line
    assert shown.count("\\*\\*done\\*\\* \\[Approve\\](https://evil.example) \\<@123456789012345678>") == 4
    assert "\n# Approved" not in shown
    assert "\n-# by Ada" not in shown


def test_c085_every_card_carries_its_request_id() -> None:
    card = an_approval()
    for value in (card, settled(card, "Denied by Ada")):
        assert f"-# Request `{card.card_id}`" in texts(cards.card(value))[-1]


def test_the_gateways_buttons_keep_their_data_and_their_tones() -> None:
    drawn = controls(cards.card(an_approval()))
    assert [(b["label"], b["custom_id"], b["style"]) for b in drawn] == [
        ("Approve", "v1:p_abcdefghijklmnopqrst:approve", 3),
        ("Deny", "v1:p_abcdefghijklmnopqrst:deny", 4),
    ]


def test_a_button_that_opens_a_form_says_so_in_its_custom_id() -> None:
    edit = Button(label="Edit", data="v1:p:e")
    card = an_approval(
        buttons=(edit, Button(label="No", data="v1:p:d")), forms=(Form(data="v1:p:e", title="", fields=()),)
    )
    first, second = [read_control(b["custom_id"]) for b in controls(cards.card(card))]
    assert (first.kind, first.data) == ("form", "v1:p:e")
    assert (second.kind, second.data) == ("press", "v1:p:d")


def test_without_a_readable_file_only_a_no_is_offered_and_there_is_no_code() -> None:
    card = an_approval(fields=(CardField(name="text", value="x" * 9000),))
    for drawn in (cards.card(card), cards.card(card, file=cards.args_file(card), readable=False)):
        assert labels(drawn) == ["Deny"]
        assert drawn["attachments"] == []
        shown = "\n".join(texts(drawn))
        assert "cannot be approved from this message" in shown
        assert card.code not in shown


def test_a_long_argument_is_shown_from_its_beginning_with_the_file_that_has_it_all() -> None:
    card = an_approval(fields=(CardField(name="text", value="begin " + "x" * 9000),))
    file = cards.args_file(card)
    assert file is not None
    drawn = cards.card(card, file=file)
    assert labels(drawn) == ["Approve", "Deny"]
    assert drawn["attachments"] == [{"id": 0, "filename": "args-K7M2.txt"}]
    assert '"attachment://args-K7M2.txt"' in json.dumps(drawn)
    [shown] = [block for content in texts(drawn) for block in fenced(content)]
    assert shown.startswith("begin xxx")
    assert shown.endswith("x…")
    assert len(shown) > 1500


def test_a_file_that_was_sent_before_is_named_but_not_attached_again() -> None:
    card = an_approval(fields=(CardField(name="text", value="x" * 9000),))
    drawn = cards.card(card, file=cards.args_file(card), attach=False)
    assert "attachments" not in drawn
    assert "attachment://" not in json.dumps(drawn)
    assert "args-K7M2.txt" in "\n".join(texts(drawn))
    assert labels(drawn) == ["Approve", "Deny"]


def test_a_settled_card_has_no_controls_and_says_what_happened() -> None:
    card = settled(an_approval(), "Approved by Ada")
    drawn = cards.card(card)
    accepted(drawn)
    assert controls(drawn) == []
    assert "**Approved by Ada**" in texts(drawn)[0]
    assert (
        drawn["components"][0]["accent_color"] != cards.card(an_approval())["components"][0]["accent_color"]
    )


def test_a_settled_card_whose_arguments_do_not_fit_refuses_nothing_any_more() -> None:
    card = settled(an_approval(fields=(CardField(name="text", value="x" * 9000),)), "Approved by Ada")
    shown = "\n".join(texts(cards.card(card)))
    assert "The arguments are shortened here." in shown
    assert "cannot be approved" not in shown


def test_a_field_cannot_imitate_another_field() -> None:
    fields = (
        CardField(name="note", value="x\n```\n**amount:**\n```\n1"),
        CardField(name="a\n**b:**", value="2"),
        CardField(name="amount", value="900"),
    )
    shown = "\n".join(texts(cards.card(an_approval(fields=fields))))
    assert fenced(shown) == [f"x\n{SPELLED}\n**amount:**\n{SPELLED}\n1", "2", "900"]
    assert "**a ↵ \\*\\*b:\\*\\*:**\n```" in shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [("", "*(empty)*"), ("\n\nx\n", "```\n↵↵x↵\n```"), ("\n\n", "```\n↵↵\n```"), ("`", "```\n`\n```")],
)
def test_what_nobody_would_see_of_an_argument_is_drawn(value: str, shown: str) -> None:
    drawn = cards.card(an_approval(fields=(CardField(name="text", value=value),)))
    assert f"**text:**\n{shown}" in texts(drawn)


# ---- previews


@given(WILD, st.sampled_from(["text", "diff"]))
def test_a_preview_is_on_the_card_or_in_the_file(preview: str, kind: str) -> None:
    card = an_approval(fields=(), preview=preview, preview_kind=kind)
    file = cards.args_file(card)
    drawn = cards.card(card, file=file)
    wanted = visible(preview).rstrip("\n")
    if file is not None:
        assert wanted in file.content.decode()
        assert file.sha256 in "\n".join(texts(drawn))
        return
    blocks = [block.removeprefix("diff\n") for content in texts(drawn) for block in fenced(content)]
    shown = [block.strip("↵").replace(SPELLED, "```") for block in blocks]
    assert shown == ([wanted.strip("\n").strip("↵").replace(SPELLED, "```")] if wanted.strip() else [])


def test_a_preview_that_is_a_diff_is_coloured_as_one_and_stands_below_the_arguments() -> None:
    card = an_approval(preview="-a\n+b ```\n# Approved", preview_kind="diff")
    shown = "\n".join(texts(cards.card(card)))
    assert f"**What it changes:**\n```diff\n-a\n+b {SPELLED}\n# Approved\n```" in shown
    assert shown.index("amount") < shown.index("What it changes")


def test_a_long_preview_leaves_room_for_the_arguments_and_is_whole_in_the_file() -> None:
    card = an_approval(preview="\n".join(f"+line {n}" for n in range(3000)), preview_kind="diff")
    file = cards.args_file(card)
    assert file is not None
    assert "+line 2999" in file.content.decode()
    shown = "\n".join(texts(cards.card(card, file=file)))
    assert all(piece in shown for piece in ("A-1001", "```diff\n+line 0\n", "…"))


# ---- who is asked

ASKED = tuple(Actor("discord", "", f"20000000000000000{n}") for n in range(10, 22))


def test_those_who_are_asked_are_paged_when_a_card_is_shown_and_nobody_else() -> None:
    card = an_approval(title=f"<@{ASKED[3].user}>", asks=ASKED[:2], ask_roles=("300000000000000001",))
    drawn = cards.card(card, mention=True)
    accepted(drawn)
    assert drawn["allowed_mentions"] == {
        "parse": [],
        "users": [one.user for one in ASKED[:2]],
        "roles": ["300000000000000001"],
    }
    live = f"<@{ASKED[0].user}> <@{ASKED[1].user}> <@&300000000000000001>"
    assert f"Notified: {live}" in texts(drawn)[0].split("\n")
    redrawn = cards.card(card)
    assert redrawn["allowed_mentions"] == {"parse": []}
    assert "Notified" not in "\n".join(texts(redrawn))


def test_no_card_pages_more_than_ten() -> None:
    card = an_approval(asks=ASKED, ask_roles=("300000000000000001",))
    drawn = cards.card(card, mention=True)
    assert drawn["allowed_mentions"] == {"parse": [], "users": [one.user for one in ASKED[:10]]}
    assert "(and 3 more, not notified)" in texts(drawn)[0]


@pytest.mark.parametrize("user", ["", "ada", "7", "99999999999999999999"])
def test_who_cannot_be_paged_is_left_out_so_that_the_card_comes_all_the_same(user: str) -> None:
    card = an_approval(asks=(Actor("discord", "", user), Actor("slack", "T1", "U5")), ask_roles=(user,))
    drawn = cards.card(card, mention=True)
    accepted(drawn)
    assert drawn == cards.card(card)


# ---- questions


def test_a_few_short_options_are_buttons() -> None:
    card = a_question(Choice(label="East", data="v1:q:0"), Choice(label="West", data="v1:q:1"))
    drawn = controls(cards.card(card))
    assert [(b["type"], b["label"], b["custom_id"]) for b in drawn] == [
        (2, "East", "v1:q:0"),
        (2, "West", "v1:q:1"),
    ]


def test_more_options_are_a_select_whose_values_are_the_presses() -> None:
    card = a_question(*(Choice(label=f"City {n}", data=f"v1:q:{n}", description="Far") for n in range(7)))
    [select] = controls(cards.card(card))
    assert select["custom_id"] == pick_id("q")
    assert (select["min_values"], select["max_values"]) == (1, 1)
    assert [option["value"] for option in select["options"]] == [f"v1:q:{n}" for n in range(7)]
    assert {option["description"] for option in select["options"]} == {"Far"}
    assert not any("default" in option for option in select["options"])


def test_c054_options_that_begin_alike_are_read_in_full_and_chosen_by_number_on_two_pages() -> None:
    texts_of_options = [
        f"{'The same beginning of every label, '.ljust(80, '-')}then {n:9}" for n in range(1, 27)
    ]
    offered = (Choice(label=label, data=f"v1:q:{n}") for n, label in enumerate(texts_of_options))
    card = a_question(*offered)
    assert cards.args_file(card) is None
    picked = []
    for page, more in ((0, ["Next ›"]), (1, ["‹ Previous"])):
        drawn = cards.card(card, page=page)
        accepted(drawn)
        shown = "\n".join(texts(drawn)).replace("\\", "")
        assert all(f"{n}. {label}" in shown for n, label in enumerate(texts_of_options, 1))
        select, turn = controls(drawn)
        picked += select["options"]
        assert [turn["label"]] == more
        assert turn["custom_id"] == page_id("q", 1 - page)
    assert [option["label"].partition(".")[0] for option in picked] == [str(n) for n in range(1, 27)]
    assert [option["value"] for option in picked] == [f"v1:q:{n}" for n in range(26)]


def test_c054_options_with_equal_labels_are_numbered() -> None:
    card = a_question(Choice(label="Yes", data="v1:q:0"), Choice(label="Yes", data="v1:q:1"))
    [select] = controls(cards.card(card))
    assert [option["label"] for option in select["options"]] == ["1. Yes", "2. Yes"]


def test_several_answers_are_toggled_in_a_select_that_shows_what_is_chosen() -> None:
    offered = tuple(Choice(label=f"City {n}", data=f"v1:q:{n}", chosen=n in (1, 27)) for n in range(30))
    card = a_question(*offered, multi=True, buttons=(Button(label="Confirm", data="v1:q:c"),))
    first, second = cards.card(card), cards.card(card, page=1)
    for drawn, page, chosen in ((first, 0, "v1:q:1"), (second, 1, "v1:q:27")):
        select = controls(drawn)[0]
        assert select["custom_id"] == many_id("q", page)
        assert (select["min_values"], select["max_values"]) == (0, len(select["options"]))
        assert [o["value"] for o in select["options"] if o.get("default")] == [chosen]
        assert labels(drawn)[-1] == "Confirm"
        assert "Chosen so far (2): City 1, City 27" in "\n".join(texts(drawn))
    assert controls(cards.card(card, page=99)) == controls(second)
    assert controls(cards.card(card, page=-1)) == controls(first)


def test_options_that_do_not_fit_are_in_the_file_and_can_still_be_chosen() -> None:
    card = a_question(*(Choice(label=f"{n} {'x' * 300}", data=f"v1:q:{n}") for n in range(40)))
    file = cards.args_file(card)
    assert file is not None
    assert file.name == "question-q.txt"
    assert f"40. 39 {'x' * 300}" in file.content.decode()
    drawn = cards.card(card, file=file)
    accepted(drawn)
    assert len(controls(drawn)[0]["options"]) == 25
    assert labels(cards.card(card)) == ["Next ›"]


def test_a_description_that_no_control_shows_is_in_the_words() -> None:
    card = a_question(Choice(label="East", data="v1:q:0", description="where the sun rises"))
    assert "1\\. East – where the sun rises" in "\n".join(texts(cards.card(card)))
    long = a_question(*(Choice(label=str(n), data=f"v1:q:{n}", description="d" * 101) for n in range(6)))
    assert choices.listing(long).count("d" * 101) == 6


def test_no_card_has_more_buttons_than_are_promised() -> None:
    buttons = tuple(Button(label=str(n), data=f"v1:p:{n}") for n in range(40))
    drawn = cards.card(an_approval(buttons=buttons))
    accepted(drawn)
    assert len(controls(drawn)) == LIMITS.buttons


# ---- golden examples


@pytest.mark.parametrize("name", sorted(CARDS))
def test_a_card_looks_as_it_was_agreed(name: str) -> None:
    drawn = drawn_card(name)
    accepted(drawn)
    assert drawn == json.loads((HERE / f"card_{name}.json").read_text(encoding="utf-8"))
