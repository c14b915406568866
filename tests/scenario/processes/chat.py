"""What a person does and sees in a Telegram chat with the tested agent."""

from __future__ import annotations

from collections.abc import Callable

from tests.platforms.telegram import Click, Json, TelegramServer
from tests.scenario.processes.gateway import LIMIT
from tests.scenario.processes.house import ADA, House

APPROVE, DENY = "Approve", "Deny"
RUN_AGAIN, TREAT_AS_DONE = "run again", "treat as done"
MAYBE_REPEATED = "may be a repeat"
SECOND_CARD = "a repeat: the card may already be above"


def labels(message: Json) -> list[str]:
    """The words on a message's buttons."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


def subject(message: Json) -> str:
    """The id of the pending whose card this is, "" for other messages."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    data = [button.get("callback_data", "") for row in rows for button in row]
    return data[0].split(":")[1] if data else ""


class PrivateChat:
    """Ada's private chat with the bot."""

    def __init__(self, server: TelegramServer, house: House) -> None:
        self.server, self.house = server, house

    def say(self, text: str) -> Json:
        """Ada writes; the update."""
        return self.server.say(ADA, ADA, text)

    def messages(self) -> list[Json]:
        return self.server.from_bot(ADA)

    def texts(self) -> list[str]:
        return [message.get("text", "") for message in self.messages()]

    def said(self, text: str) -> list[str]:
        """The bot's messages that begin so."""
        return [found for found in self.texts() if found.startswith(text)]

    def cards(self, label: str) -> list[Json]:
        """Messages that have a button with this label now."""
        return [message for message in self.messages() if label in labels(message)]

    async def card(self, label: str = APPROVE) -> Json:
        """Wait for a card with this button; the newest."""
        return (await self.seen(lambda: self.cards(label), f"a card with {label!r}"))[-1]

    async def seen(self, check: Callable[[], list], what: str, within: float = LIMIT) -> list:
        """Wait until the chat shows something."""
        try:
            return await self.server.wait_for(check, within)
        except TimeoutError:
            logs = "\n----\n".join(process.text for process in self.house.processes)
            raise AssertionError(f"never seen: {what}\n{self.texts()}\n{logs}") from None

    async def words(self, text: str, count: int = 1) -> list[str]:
        """Wait until the bot has said something that begins so, `count` times."""
        return await self.seen(lambda: self.said(text) if len(self.said(text)) >= count else [], text)

    def click(self, message: Json, label: str, user: int = ADA) -> Click:
        return self.server.click(message, label, user)

    async def answered(self, click: Click) -> str:
        """Wait for the answer to a click; its text."""
        await self.seen(lambda: click.answers, "an answer to a click")
        return click.text

    async def settled(self, done: str) -> list[str]:
        """Answer questions about calls in doubt, by what the ledger says, until the bot shows `done`
        (a button or the beginning of a message). The tools that were asked about."""
        asked: list[str] = []
        while True:
            await self.seen(
                lambda: self.cards(RUN_AGAIN) or self.cards(done) or self.said(done), f"{done} or a question"
            )
            if not self.cards(RUN_AGAIN):
                return asked
            question = self.cards(RUN_AGAIN)[-1]
            tool = self.house.tool_of(subject(question))
            asked.append(tool)
            label = TREAT_AS_DONE if self.house.ledger(tool) else RUN_AGAIN
            await self.answered(self.click(question, label))
            await self.seen(lambda: [0] if not self.cards(RUN_AGAIN) else [], "the question is settled")

    async def confirmed(self) -> None:
        """Wait until everything that was sent to the bot is taken in."""
        bots = self.server.bots.values()
        await self.seen(lambda: [] if any(bot.updates for bot in bots) else [True], "all is taken in")
