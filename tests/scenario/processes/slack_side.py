"""What the process scenarios look at in Slack."""

from __future__ import annotations

from tests.platforms.slack import SlackServer


def slack_table(slack: SlackServer) -> str:
    """The configuration of the channel; Ada, Bob and Cleo may talk."""
    return (
        f'[channels.slack]\nbot_token = "{slack.app.bot_token}"\napp_token = "{slack.app.app_token}"\n'
        f'api_base = "{slack.api_base}"\nusers = ["T1:U1", "T1:U2", "T1:U3"]\n'
    )


def cards(slack: SlackServer, channel: str) -> list[str]:
    """The time stamps of the messages that can be decided."""
    return [m["ts"] for m in slack.from_bot(channel) if "Approve" in slack.labels(channel, m["ts"])]


def words(slack: SlackServer, channel: str) -> str:
    """Everything that the bot has written in a channel."""
    return "\n".join(slack.shown(channel, m["ts"]) for m in slack.from_bot(channel))
