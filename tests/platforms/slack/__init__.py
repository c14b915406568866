"""A strict Slack for tests: Web API, Socket Mode and HTTP delivery, real sockets, trouble on demand."""

from tests.platforms.slack.clicks import Submitted
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.limits import Json
from tests.platforms.slack.people import Said
from tests.platforms.slack.server import SlackServer
from tests.platforms.slack.sockets import Connection

__all__ = ["Connection", "Delivery", "Json", "Said", "SlackServer", "Submitted"]
