"""`threadgate chat` asks a person at the terminal: several questions, values of a kind."""

from __future__ import annotations

import io

from rich.console import Console

from channels.terminal.adapter import Terminal
from gateway.app.console import TerminalApprover
from gateway.approvals import Answer, Pending
from gateway.messages import Json, call_hash
from gateway.questions import Question
from gateway.tools.system import read_question


class Typed(Terminal):
    """A terminal at which these lines are typed; the end of input after them."""

    def __init__(self, *lines: str) -> None:
        self.paper = io.StringIO()
        super().__init__(Console(file=self.paper, width=200))
        self._lines = list(lines)

    async def ask(self, prompt: str) -> str:
        self.paper.write(prompt + "\n")
        if not self._lines:
            raise EOFError
        return self._lines.pop(0)


def asked(args: Json) -> Pending:
    question = read_question(args)
    assert isinstance(question, Question)
    return Pending(
        pending_id="p_1",
        kind="question",
        call_id="c1",
        tool="ask_user",
        args=args,
        args_hash=call_hash("ask_user", args),
        code="abcde",
        question=question,
    )


RELEASE: Json = {
    "questions": [
        {"name": "env", "question": "Which env?", "options": ["staging", "prod"], "allow_text": False},
        {"name": "count", "question": "How many?", "kind": "integer"},
    ]
}


async def test_several_questions_are_filled_in_mended_and_confirmed() -> None:
    #                  Answer…  env  count   Answer…  env  count  Confirm
    terminal = Typed("1", "2", "lots", "1", "2", "12", "1")
    assert await TerminalApprover(terminal).decide(asked(RELEASE)) == Answer(values=("env=prod", "count=12"))
    paper = terminal.paper.getvalue()
    assert "Which env? (staging, prod):" in paper and "How many? (a whole number, like 12):" in paper
    assert "count: a whole number is needed" in paper
    assert "Noted: env: prod; count: 12. Press Confirm" in paper


async def test_an_answer_so_far_can_be_changed_and_empty_keeps_it() -> None:
    terminal = Typed("1", "1", "3", "2", "", "4", "1")
    answer = await TerminalApprover(terminal).decide(asked(RELEASE))
    assert answer == Answer(values=("env=staging", "count=4"))
    assert "How many? (a whole number, like 12) [3]:" in terminal.paper.getvalue()


async def test_a_question_can_be_left_open() -> None:
    assert await TerminalApprover(Typed("")).decide(asked(RELEASE)) is None
    assert await TerminalApprover(Typed()).decide(asked({"question": "?", "kind": "boolean"})) is None
