"""The scripted model: what it says is a function of the request, and its script's errors are clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.messages import Message, Text, ToolResult, ToolUse, assistant, tool_results, user
from gateway.providers.base import ModelRequest, ModelResponse
from gateway.providers.scripted import Reply, ScriptedModel, load_script

REFUND = {
    "rules": [
        {
            "match": r"refund order (?P<order>[A-Z]-\d+)",
            "replies": [
                {"text": "Looking.", "calls": [{"tool": "lookup_order", "args": {"order_id": "{order}"}}]},
                {
                    "calls": [
                        {"tool": "refund", "args": {"order_id": "{order}", "amount": "{lookup_order.total}"}}
                    ]
                },
                {"text": "Paid {lookup_order.total} for {0}, item {lookup_order.items.0.sku}: {answer}"},
            ],
        },
        {"replies": [{"text": "Try `refund order A-1`; write {{order}} for {} or {a b}."}]},
    ]
}
ORDER = json.dumps({"total": 12.5, "items": [{"sku": "tea"}]})


def ask(*messages: Message, session: str = "s") -> ModelRequest:
    return ModelRequest(system="", messages=messages, session_id=session)


def written(response: ModelResponse) -> Message:
    return Message(role="assistant", content=response.content, model=response.model)


def answered(message: Message, *contents: str) -> Message:
    return tool_results(
        [
            ToolResult(tool_use_id=call.id, content=text)
            for call, text in zip(message.calls, contents, strict=True)
        ]
    )


async def test_a_rule_walks_through_its_replies_with_groups_and_results_filled_in() -> None:
    model = ScriptedModel(REFUND)
    log = [user("please refund order A-7")]
    log.append(written(await model.complete(ask(*log))))
    assert log[-1].text == "Looking."
    assert log[-1].calls[0].input == {"order_id": "A-7"}
    log.append(answered(log[-1], ORDER))
    log.append(written(await model.complete(ask(*log))))
    assert log[-1].calls[0].input == {"order_id": "A-7", "amount": 12.5}
    log.append(answered(log[-1], "done"))
    last = await model.complete(ask(*log))
    assert written(last).text == "Paid 12.5 for refund order A-7, item tea: done"
    assert last.stop == "end"


async def test_the_last_rule_without_match_takes_the_rest_and_braces_stay_text() -> None:
    reply = await ScriptedModel(REFUND).complete(ask(user("hi")))
    assert written(reply).text == "Try `refund order A-1`; write {order} for {} or {a b}."


async def test_a_new_process_gives_the_same_reply_in_the_middle_of_a_turn() -> None:
    log = [user("refund order A-7")]
    log.append(written(await ScriptedModel(REFUND).complete(ask(*log))))
    log.append(answered(log[-1], ORDER))
    assert await ScriptedModel(REFUND).complete(ask(*log)) == await ScriptedModel(REFUND).complete(ask(*log))


async def test_a_second_turn_starts_its_rule_anew_and_a_note_does_not_start_one() -> None:
    model = ScriptedModel(REFUND)
    note = Message(role="user", content=(Text(text="the process died"),), kind="note")
    log = [user("hi"), assistant(Text(text="Try")), user("refund order B-2"), note]
    assert written(await model.complete(ask(*log))).calls[0].input == {"order_id": "B-2"}


async def test_call_ids_differ_between_replies_and_turns_and_repeat_for_the_same_request() -> None:
    model = ScriptedModel({"rules": [{"replies": [{"calls": [{"tool": "t"}, {"tool": "t"}]}] * 3}]})
    seen: list[str] = []
    log: list[Message] = []
    for _ in range(3):
        log.append(user("same words"))
        for _ in range(3):
            reply = await model.complete(ask(*log))
            assert await model.complete(ask(*log)) == reply
            log.append(written(reply))
            log.append(answered(log[-1], "ok", "ok"))
            seen += [call.id for call in log[-2].calls]
    summary = Message(role="user", content=(Text(text="so far"),), kind="summary")
    for _ in range(2):  # compaction hides the earlier ids; the count of messages starts again
        short = [summary, user("same words")]
        seen += [call.id for call in written(await model.complete(ask(*short))).calls]
        summary = Message(role="user", content=(Text(text="so far, and more"),), kind="summary")
    assert len(seen) == len(set(seen)) == 22


async def test_a_flat_list_counts_all_assistant_messages() -> None:
    model = ScriptedModel(["one", Reply(text="two"), {"text": "three"}])
    log = [user("a")]
    for expected in ("one", "two", "three"):
        log += [written(await model.complete(ask(*log))), user("next")]
        assert log[-2].text == expected
    with pytest.raises(ModelRejected, match="3 replies here, number 4"):
        await model.complete(ask(*log))


async def test_a_function_of_the_request_is_a_script_and_its_braces_are_text() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} {{x}}")
    assert written(await model.complete(ask(user("a"), user("b")))).text == "2 {x}"


@pytest.mark.parametrize("chunk", [1, 3, 100])
async def test_deltas_join_to_the_text(chunk: int) -> None:
    heard: list[str] = []
    reply = await ScriptedModel(["äöü 👍 and more"], chunk=chunk).complete(ask(user("a")), heard.append)
    assert "".join(heard) == written(reply).text == "äöü 👍 and more"
    assert max(map(len, heard)) <= chunk


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ("rate_limited", ModelRateLimited),
        ("overloaded", ModelOverloaded),
        ("auth", ModelAuthError),
        ("rejected", ModelRejected),
        ("too_long", ModelRejected),
    ],
)
async def test_a_scripted_failure_is_the_error_it_names(failure: str, kind: type[ModelError]) -> None:
    heard: list[str] = []
    model = ScriptedModel([{"text": "half", "error": failure, "retry_after": 3}])
    with pytest.raises(kind) as caught:
        await model.complete(ask(user("a")), heard.append)
    assert heard == ["half"]
    if isinstance(caught.value, ModelRejected):
        assert caught.value.context_too_long == (failure == "too_long")
    else:
        assert caught.value.retry_after == (None if failure == "auth" else 3)


async def test_a_failure_with_times_passes_after_that_many_attempts() -> None:
    model = ScriptedModel([{"text": "ok", "error": "overloaded", "times": 2}])
    for _ in range(2):
        with pytest.raises(ModelOverloaded):
            await model.complete(ask(user("a")))
    assert written(await model.complete(ask(user("a")))).text == "ok"


async def test_c063_a_reply_cut_at_the_limit_marks_every_call_and_bad_json_marks_its_own() -> None:
    calls = [
        {"tool": "a", "args": {"x": 1}},
        {"tool": "b", "args": '{"path": notes.md"}'},
        {"tool": "c", "args": ""},
    ]
    model = ScriptedModel([{"calls": calls, "stop": "length"}, {"calls": calls}])
    cut = await model.complete(ask(user("a")))
    assert cut.stop == "length"
    assert all(call.invalid for call in written(cut).calls)
    whole = await model.complete(ask(user("a"), written(cut)))
    a, b, c = written(whole).calls
    assert (a.invalid, c.invalid, c.input) == (None, None, {})
    assert b.invalid is not None
    assert b.input == {}


async def test_an_unresolved_template_says_what_the_turn_does_not_have() -> None:
    log = [user("refund order A-7")]
    log += [assistant(ToolUse(id="1", name="lookup_order", input={}))]
    log += [tool_results([ToolResult(tool_use_id="1", content="no such order")])]
    with pytest.raises(ModelRejected, match="not JSON"):
        await ScriptedModel(REFUND).complete(ask(*log))


TOML = """
[[rules]]
match = "hello (?P<name>\\\\w+)"
[[rules.replies]]
text = "Hi {name}"
"""


async def test_a_script_is_read_from_toml_and_from_json(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TOML)
    (tmp_path / "s.json").write_text(json.dumps(["one"]))
    greeting = await ScriptedModel(load_script(tmp_path / "s.toml")).complete(ask(user("hello you")))
    assert written(greeting).text == "Hi you"
    flat = await ScriptedModel(load_script(tmp_path / "s.json")).complete(ask(user("x")))
    assert written(flat).text == "one"


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("s.toml", "rules = [", "is not TOML"),
        ("s.json", "{", "is not JSON"),
        ("s.toml", "", "neither rules nor replies"),
        ("s.toml", 'replies = ["a"]\n[[rules]]\nreplies = [{text = "b"}]', "rules and replies"),
        ("s.toml", "[[rules]]\nreplies = []", "rule 1, replies: "),
        (
            "s.toml",
            '[[rules]]\nreplies = [{text = "a"}, {txt = "b"}]',
            r"rule 1, reply 2: .*`txt`.*known here: calls",
        ),
        (
            "s.toml",
            '[[rules]]\nreplies = [{calls = [{tol = "b"}]}]',
            r"rule 1, reply 1, call 1: .*known here: args",
        ),
        ("s.toml", '[[rules]]\nmatch = "("\nreplies = [{text = "a"}]', "rule 1: match '\\('"),
        (
            "s.toml",
            '[[rules]]\nmatch = "a"\nreplies = [{text = "{order}"}]',
            r"rule 1, reply 1: \{order\}.*\{\{order\}\}",
        ),
        ("s.toml", '[[rules]]\nreplies=[{text="a"}]\n[[rules]]\nreplies=[{text="b"}]', "rule 1 has no match"),
        ("s.toml", '[[replies]]\ntext = "a"\nretry_after = 3', "reply 1: retry_after"),
        ("s.toml", '[[replies]]\nerror = "sad"', "reply 1, error: "),
        ("s.json", "3", "script"),
    ],
)
def test_a_script_error_names_the_file_the_place_and_the_mend(
    tmp_path: Path, name: str, body: str, says: str
) -> None:
    path = tmp_path / name
    path.write_text(body)
    with pytest.raises(ConfigError, match=says) as caught:
        load_script(path)
    assert caught.value.key == str(path)


def test_a_missing_or_unreadable_script_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_script(tmp_path / "none.toml")
    (tmp_path / "bin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path / "bin.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path)


async def test_usage_is_the_same_every_time_and_grows_with_the_history() -> None:
    model: Any = ScriptedModel({"rules": [{"replies": [{"text": "four" * 4}]}]})
    short = await model.complete(ask(user("a")))
    long = await model.complete(ask(user("a" * 400), assistant(Text(text="b")), user("c")))
    assert short.usage == (await model.complete(ask(user("a")))).usage
    assert short.usage.output == 4
    assert long.usage.input > short.usage.input + 90
