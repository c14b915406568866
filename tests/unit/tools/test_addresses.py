"""Which addresses an agent may reach."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.tools.addresses import may_reach

PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2001:4860:4860::8888")
INNER = (
    *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "172.16.0.1", "172.31.255.255"),  # noqa: S104
    *(
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.8",
        "192.0.2.1",
    ),
    *("198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1"),
    *("fd00::1", "ff02::1", "2001:db8::1", "2001::1", "2002:7f00:1::", "2002:808:808::", "100::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::808:808"),
    *("64:ff9b::a9fe:a9fe", "", "localhost", "127.1", "2130706433", "0x7f000001"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached_however_it_is_written(address: str) -> None:
    assert may_reach(address)
    if ":" not in address:
        assert may_reach(f"::ffff:{address}")
        assert may_reach(str(IPv6Address(int(IPv6Address("64:ff9b::")) + int(IPv4Address(address)))))


@pytest.mark.parametrize("address", INNER)
def test_an_inner_address_may_not_be_reached(address: str) -> None:
    assert not may_reach(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_like_itself(address: IPv4Address) -> None:
    inner = may_reach(str(address))
    assert may_reach(f"::ffff:{address}") == inner
    assert may_reach(str(IPv6Address(int(IPv6Address("64:ff9b::")) + int(address)))) == inner
    assert not may_reach(str(IPv6Address((0x2002 << 112) | (int(address) << 80))))


@given(st.integers(8, 32), st.ip_addresses(v=4))
def test_what_is_allowed_opens_itself_and_nothing_else(prefix: int, address: IPv4Address) -> None:
    network = IPv4Network((int(address), prefix), strict=False)
    assert may_reach(str(address), [network])
    assert may_reach(f"::ffff:{address}", [network])
    outside = "127.0.0.1" if IPv4Address("127.0.0.1") not in network else "10.0.0.1"
    assert not may_reach(outside, [network]) or IPv4Address(outside) in network


def test_a_network_of_one_family_does_not_open_the_other() -> None:
    assert not may_reach("::1", [ip_network("127.0.0.1")])
    assert may_reach("::1", [ip_network("::1")])
