"""What people can type instead of talking to the agent. Pure: words in, a command out."""

from __future__ import annotations

from dataclasses import dataclass

COMMANDS: dict[str, str] = {
    "new": "start a fresh conversation here",
    "stop": "stop what I am doing, close what is waiting",
    "status": "what I am doing",
    "pending": "`/pending [mine | all]` - what waits for a decision; `show`, `cancel` or `give` with a CODE",
    "grants": "`/grants [revoke CODE]` - what is not asked about any more",
    "schedules": "`/schedules [all | cancel CODE]` - what I am to do here later, or again and again",
    "memory": "`/memory [forget KEY | all | thread]` - what I have noted about you and here; forgetting it",
    "approve": "`/approve CODE` - say yes to a request",
    "deny": "`/deny CODE [why]` - say no to a request",
    "model": "`/model [NAME | default]` - which model answers here, or another one in this conversation",
    "agent": "`/agent [NAME]` - which agent answers here, or another one from now on",
    "pair": "`/pair CODE` - let somebody in who showed you a code",
    "help": "this list",
}

# What people write after the bot's name without a sign in front, because that is what they would say.
BARE = frozenset({"new", "stop", "status", "pending", "help"})
ALIASES = {"start": "help"}  # what Telegram sends when somebody opens the chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: its name, and the words after it."""

    name: str
    words: tuple[str, ...]

    @property
    def rest(self) -> str:
        """Everything after the first word (the code)."""
        return " ".join(self.words[1:])


def is_bare(text: str) -> bool:
    """Whether a text is one of the words that count as a command behind the bot's name, and no more."""
    return text.strip().casefold() in BARE


def read_command(text: str, *, bare: bool = False) -> Command | None:
    """The command that a message is; None for anything else, unknown slash words included (they
    may be a path or a figure of speech, and go to the agent). `!name` is the same as `/name`: some
    platforms keep slash commands for themselves. `bare`: the bot was called by name, and a single word
    of BARE is the command too."""
    words = text.strip().split()
    if bare and is_bare(text):
        return Command(name=words[0].casefold(), words=())
    if not words or not words[0].startswith(("/", "!")):
        return None
    name = words[0][1:].partition("@")[0].casefold()
    name = ALIASES.get(name, name)
    return Command(name=name, words=tuple(words[1:])) if name in COMMANDS else None


def menu() -> list[tuple[str, str]]:
    """Each command and what it does, for a platform's own list, where how it is written stands beside it."""
    return [(name, what.rpartition("` - ")[2].replace("`", "")) for name, what in COMMANDS.items()]


def help_text() -> str:
    """What `/help` answers."""
    lines = [f"- `/{name}` - {what}" if "`" not in what else f"- {what}" for name, what in COMMANDS.items()]
    return "Write to me as to a person. Besides, I understand:\n\n" + "\n".join(lines)
