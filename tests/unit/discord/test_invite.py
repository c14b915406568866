"""A bot is invited with exactly what its calls need, and everybody can read why."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from channels.discord import invite
from channels.discord.limits import METHODS, PERMISSIONS


@pytest.mark.parametrize("name", sorted(PERMISSIONS))
def test_every_permission_is_needed_by_a_call_and_has_its_reason(name: str) -> None:
    needing = [route for route, method in METHODS.items() if name in method.permissions]
    assert needing
    assert invite.WHY[name].startswith("to ")


def test_no_call_needs_a_permission_that_is_not_asked_for() -> None:
    needed = {name for method in METHODS.values() for name in method.permissions}
    assert needed == set(invite.WHY) == set(PERMISSIONS)


def test_the_address_asks_for_these_permissions_and_scopes_and_no_more() -> None:
    address = urlsplit(invite.url("123456789012345678"))
    assert (address.scheme, address.netloc, address.path) == ("https", "discord.com", "/oauth2/authorize")
    query = parse_qs(address.query)
    assert query["client_id"] == ["123456789012345678"]
    assert set(query["scope"][0].split()) == set(invite.SCOPES)
    asked = int(query["permissions"][0])
    assert {name for name, bit in PERMISSIONS.items() if asked & bit} == set(invite.WHY)
    assert asked == invite.permissions() == 309237746752
    assert query["integration_type"] == ["0"]


def test_administrator_and_what_pages_everybody_are_never_asked_for() -> None:
    for bit in (1 << 3, 1 << 13, 1 << 17, 1 << 28, 1 << 34):  # with messages, roles and threads of others
        assert not invite.permissions() & bit


@pytest.mark.parametrize("wrong", ["", "my-bot", "1" * 21, "1&scope=x"])
def test_what_is_no_id_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="application's id"):
        invite.url(wrong)


def test_the_bits_are_those_that_the_library_knows() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # discord.py imports audioop
        from discord import Intents, Permissions
    from channels.discord.limits import ADMINISTRATOR, INTENTS

    assert {name: Permissions(**{name: True}).value for name in PERMISSIONS} == dict(PERMISSIONS)
    assert Permissions(administrator=True).value == ADMINISTRATOR
    for name, bit in INTENTS.items():
        wanted = Intents.none()
        setattr(wanted, name, True)
        assert wanted.value == bit
