"""Skills: the open layout read strictly, an index within its budget, bodies with arguments and files."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError, ToolError
from gateway.loop import run_agent
from gateway.messages import Json
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel
from gateway.tools.base import CallContext
from gateway.tools.skills import Skill, index, load_skills, skill_tool, tokens, with_arguments
from tests.unit.loop.scene import Log, agent, options, rule

CONTEXT = CallContext(call_id="c1", session_id="s1", turn_id="s1.1", idempotency_key="s1:c1")
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a skill; `head` replaces its front matter."""

    def run(name: str, body: str = "Do it.", *, head: str | None = None, file: str = "SKILL.md") -> Path:
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        front = f"name: {name}\ndescription: How to {name}." if head is None else head
        (folder / file).write_text(f"---\n{front}\n---\n\n{body}\n", encoding="utf-8")
        return folder

    return run


def load(folder: Path) -> tuple[Skill, ...]:
    return load_skills([("agents.desk.skills[0]", folder)])


async def call(skills: tuple[Skill, ...], **args: Any) -> str:
    outcome = await skill_tool(skills).handler(args, CONTEXT)
    assert isinstance(outcome, str)
    return outcome


# ---- reading


def test_a_folder_of_skills_and_a_single_skill_are_both_read(write: Write, tmp_path: Path) -> None:
    write("zip-files")
    write("answer-mail", head="name: answer-mail\ndescription: >\n  Answer\n  mail.\nlicense: MIT\n")
    (tmp_path / "skills" / "notes.txt").write_text("no skill")
    (tmp_path / "skills" / ".git").mkdir()
    found = load(tmp_path / "skills")
    assert [(skill.name, skill.description) for skill in found] == [
        ("answer-mail", "Answer mail."),
        ("zip-files", "How to zip-files."),
    ]
    assert [skill.name for skill in load(tmp_path / "skills" / "zip-files")] == ["zip-files"]


def test_every_field_of_the_open_layout_is_taken(write: Write, tmp_path: Path) -> None:
    write(
        "pdf",
        head="name: pdf\ndescription: x\nlicense: MIT\ncompatibility: Needs git\n"
        "metadata:\n  author: me\nallowed-tools: Read Bash(git:*)",
    )
    write("list", head="name: list\ndescription: x\nallowed-tools:\n  - Read\n  - Bash(git:*)")
    assert len(load(tmp_path / "skills")) == 2


@pytest.mark.parametrize(
    ("head", "problem", "mend"),
    [
        ("description: x", "name is missing", "write name: pay"),
        ("name: 12\ndescription: x", "name is no text", "quotes"),
        ("name: Pay\ndescription: x", "no name of a skill", "a-z"),
        ("name: pay--back\ndescription: x", "no name of a skill", "a-z"),
        ("name: -pay\ndescription: x", "no name of a skill", "a-z"),
        (f"name: {'a' * 65}\ndescription: x", "no name of a skill", "1 to 64"),
        ("name: other\ndescription: x", "not its folder's name, 'pay'", "the same"),
        ("name: pay", "description is missing", "what it does and when"),
        ("name: pay\ndescription: '  '", "description is empty", "what it does and when"),
        ("name: pay\ndescription: [a]", "description is no text", "quotes"),
        (f"name: pay\ndescription: {'x' * 1025}", "description has 1025 characters", "at most 1024"),
        (f"name: pay\ndescription: x\ncompatibility: {'x' * 501}", "compatibility has 501", "at most 500"),
        ("name: pay\ndescription: x\nmetadata: no", "metadata is no mapping", "key: value"),
        ("name: pay\ndescription: x\nallowed-tools: 3", "allowed-tools is no list", "spaces"),
        ("name: pay\ndescription: Use when: now", "not YAML", "put into quotes"),
        ("name: pay\nname: pay\ndescription: x", "name: is there twice", ""),
        ("- a\n- b", "holds no keys", "name:"),
        ("", "holds no keys", "name:"),
        ("name: pay\ndescription: !!python/object/apply:os.getcwd []", "not YAML", ""),
    ],
)
def test_a_skill_with_a_mistake_names_its_file_and_the_mend(
    write: Write, tmp_path: Path, head: str, problem: str, mend: str
) -> None:
    folder = write("pay", head=head)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "skills")
    assert caught.value.key.startswith(str(folder / "SKILL.md"))
    assert problem in caught.value.problem
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    ("text", "problem"),
    [("# Pay\n", "has no front matter"), ("---\nname: pay\n", "does not end"), ("", "has no front matter")],
)
def test_a_file_without_front_matter_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "pay").mkdir()
    (tmp_path / "pay" / "SKILL.md").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert problem in caught.value.problem


def test_folders_that_hold_no_skill_are_named_by_key(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as missing:
        load(tmp_path / "skills")
    assert missing.value.key == "agents.desk.skills[0]"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError) as empty:
        load(tmp_path / "empty")
    assert "no skill in" in empty.value.problem
    write("pay", file="skill.md")
    with pytest.raises(ConfigError) as lower:
        load(tmp_path / "skills")
    assert lower.value.mend == "rename it SKILL.md"


def test_two_skills_of_one_name_are_refused(write: Write, tmp_path: Path) -> None:
    write("pay")
    folder = tmp_path / "skills"
    with pytest.raises(ConfigError) as caught:
        load_skills([("a", folder), ("b", folder / "pay")])
    assert "there is a skill 'pay'" in caught.value.problem


def test_a_field_that_is_none_is_not_used_and_said_so(
    write: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write("pay", head="name: pay\ndescription: x\nlicence: MIT\nversion: 2")
    with caplog.at_level(logging.WARNING):
        assert len(load(tmp_path / "skills")) == 1
    assert "licence is no field of a skill and is not used, did you mean license?" in caplog.text
    assert "version is no field of a skill and is not used" in caplog.text


# ---- the index

words = st.text("abcdefghij klmnop", min_size=1, max_size=120).filter(str.strip)
names = st.lists(st.from_regex(r"[a-z]{1,20}(-[a-z]{1,20})?", fullmatch=True), unique=True, max_size=25)


@st.composite
def skills(draw: st.DrawFn) -> list[Skill]:
    return [
        Skill(name=name, description=" ".join(draw(words).split()), folder=Path("/none"))
        for name in draw(names)
    ]


@given(skills(), st.integers(0, 1_500), st.randoms())
def test_the_index_never_exceeds_its_budget_and_is_the_same_in_any_order(
    found: list[Skill], budget: int, random: Any
) -> None:
    text = index(found, budget)
    assert tokens(text) <= budget
    shuffled = list(found)
    random.shuffle(shuffled)
    assert index(shuffled, budget) == text


@given(skills(), st.integers(100, 1_500))
def test_every_skill_is_in_the_index_by_description_by_name_or_as_one_of_those_left(
    found: list[Skill], budget: int
) -> None:
    text = index(found, budget)
    lines = text.splitlines()
    described = {line[2:].partition(":")[0] for line in lines if line.startswith("- ")}
    by_name = [line for line in lines if line.startswith("Further skills, by name: ")]
    named = set(by_name[0].removeprefix("Further skills, by name: ").split(", ")) if by_name else set()
    left = [int(line.split()[0]) for line in lines if line.endswith(" more: ask by name.")]
    assert len(described) + len(named) + sum(left) == len(found)
    assert described | named <= {skill.name for skill in found}
    assert not (described and left)  # descriptions give way before names do


def test_what_fits_is_described_then_named_then_counted() -> None:
    found = [Skill(name=f"s{n:02}", description="word " * 20, folder=Path("/")) for n in range(30)]
    assert index(found, 5_000).count("\n- ") == 30
    some = index(found, 400)
    assert 0 < some.count("\n- ") < 30 and "Further skills, by name: s" in some and "more:" not in some
    few = index(found, 60)
    assert few.endswith(" more: ask by name.") and "- s00" not in few and "s00" in few
    assert index([], 400) == ""


# ---- arguments

plain = st.text(st.characters(exclude_characters="$\\", exclude_categories=["Cs"]), max_size=60)


@given(st.lists(plain, max_size=4), st.text(max_size=40))
def test_what_is_put_in_is_never_looked_at_again(pieces: list[str], args: str) -> None:
    body = "<$ARGUMENTS>".join(pieces)
    text = with_arguments(body, args)
    if len(pieces) > 1:
        assert text == f"<{args}>".join(pieces)
    else:
        assert text == (f"{body}\n\nARGUMENTS: {args}" if args.strip() else body)


@given(st.text(max_size=120))
def test_without_arguments_only_the_places_for_all_of_them_and_their_escapes_change(body: str) -> None:
    if "$ARGUMENTS" not in body and "\\$" not in body:
        assert with_arguments(body, "") == body


@given(plain, plain, st.text(min_size=1, max_size=20).filter(str.strip))
def test_an_escaped_place_stays_as_it_is_written(before: str, after: str, args: str) -> None:
    for place in ("$ARGUMENTS", "$1", "$9"):
        text = with_arguments(f"{before}\\{place} {after}", args)
        assert text == f"{before}{place} {after}\n\nARGUMENTS: {args}"


@pytest.mark.parametrize(
    ("body", "args", "text"),
    [
        ("Look at $1 and $2.", 'A-1 "two words"', "Look at A-1 and two words."),
        ("Look at $1 and $2.", "A-1", "Look at A-1 and $2."),
        ("All: $ARGUMENTS; first: $1", "a 'b c'", "All: a 'b c'; first: a"),
        ("It costs $10 or $12,50.", "x", "It costs $10 or $12,50.\n\nARGUMENTS: x"),
        ("$1", "it's", "it's"),
        ("$1 $2", "$2 $1", "$2 $1"),
        ("$ARGUMENTS_OLD", "x", "$ARGUMENTS_OLD\n\nARGUMENTS: x"),
        ("!`rm -rf /` $(id) ${HOME}", "", "!`rm -rf /` $(id) ${HOME}"),
    ],
)
def test_arguments_come_into_the_body(body: str, args: str, text: str) -> None:
    assert with_arguments(body, args) == text


# ---- the tool


async def test_a_body_comes_with_its_arguments_and_the_list_of_its_files(
    write: Write, tmp_path: Path
) -> None:
    folder = write("pay", "Pay $1.")
    (folder / "references").mkdir()
    (folder / "references" / "limits.md").write_text("At most 20.")
    text = await call(load(tmp_path / "skills"), skill="pay", args="A-1")
    assert text.startswith("Pay A-1.")
    assert "references/limits.md" in text
    assert await call(load(tmp_path / "skills"), skill="pay", file="references/limits.md") == "At most 20."


async def test_a_body_that_has_changed_is_read_again_and_one_that_is_gone_is_an_error(
    write: Write, tmp_path: Path
) -> None:
    folder = write("pay", "Old.")
    found = load(tmp_path / "skills")
    assert await call(found, skill="pay") == "Old."
    write("pay", "New, and longer.")
    assert await call(found, skill="pay") == "New, and longer."
    write("pay", head="name: pay")
    with pytest.raises(ToolError, match="cannot be read now: description is missing"):
        await call(found, skill="pay")
    (folder / "SKILL.md").unlink()
    with pytest.raises(ToolError, match="is gone"):
        await call(found, skill="pay")


async def test_nothing_outside_of_the_skill_is_read(write: Write, tmp_path: Path) -> None:
    folder = write("pay")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "picture.png").write_bytes(b"\x89PNG\0\xff")
    found = load(tmp_path / "skills")
    for path in ("../../secret.txt", str(tmp_path / "secret.txt"), "link.txt", "up/secret.txt", "pipe", "."):
        with pytest.raises(ToolError):
            await call(found, skill="pay", file=path)
    with pytest.raises(ToolError, match="no text"):
        await call(found, skill="pay", file="picture.png")
    with pytest.raises(ToolError, match="there is no file"):
        await call(found, skill="pay", file="none.md")


async def test_an_unknown_skill_is_an_error_with_the_nearest_name(write: Write, tmp_path: Path) -> None:
    write("pay-back")
    with pytest.raises(ToolError, match="did you mean pay-back"):
        await call(load(tmp_path / "skills"), skill="payback")


async def test_a_loaded_skill_is_an_event_and_passes_a_gate_that_asks_by_default(
    write: Write, tmp_path: Path
) -> None:
    (write("pay", "Pay.") / "more.md").write_text("more")
    asked: list[Json] = [
        {"skill": "pay"},
        {"skill": "pay", "file": "more.md"},
        {"skill": "none"},
    ]

    def reply(request: ModelRequest) -> Reply:
        if request.messages[-1].results:
            return Reply(text="done")
        return Reply(calls=tuple(Call(tool="Skill", args=args) for args in asked))

    log = Log()
    desk = agent(skill_tool(load(tmp_path / "skills")), default="ask")
    result = await run_agent(desk, ScriptedModel(reply), "go", options=options(log))
    assert result.text == "done"
    assert [event.skill for event in log.of("skill:loaded")] == ["pay"]
    refusing = agent(skill_tool(load(tmp_path / "skills")), rules=[rule("Skill", "deny")])
    refused = await run_agent(refusing, ScriptedModel(reply), "go", options=options())
    assert all(r.content.startswith("denied") for m in refused.messages for r in m.results)
