"""Which network addresses an agent may reach. Pure.

Only addresses of the public internet are, and those that the configuration names. Every other way to
write an inner address in IPv6 counts as that address.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Beyond what the standard library calls private, multicast or reserved.
_NEVER = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "192.0.0.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "198.18.0.0/15",
        "240.0.0.0/4",
        "64:ff9b:1::/48",  # NAT64 of one's own network
        "100::/64",
        "2001::/23",  # Teredo, ORCHID and other special uses
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")  # long gone, and a way to write IPv4


def may_reach(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a connection to this address is allowed; False for what is no address."""
    if "%" in text:  # an address of one link
        return False
    try:
        address = plain(ip_address(text))
    except ValueError:
        return False
    if any(address.version == network.version and address in network for network in allowed):
        return True
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address.version == network.version and address in network for network in _NEVER)


def plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address
