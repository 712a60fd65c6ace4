"""Sums the bytes of a PCAP file by pair of IPv4 addresses: python3 talkers.py out.pcap"""

import collections
import ipaddress
import struct
import sys

ETHERNET, VLAN, IPV4 = 1, 0x8100, 0x0800


def packets(path):
    """(captured bytes, length on the wire) of each record; little-endian files, as the gateway writes them."""
    with open(path, "rb") as file:
        magic, _, _, _, _, _, link_type = struct.unpack("<IHHiIII", file.read(24))
        if magic not in (0xA1B2C3D4, 0xA1B23C4D) or link_type != ETHERNET:
            sys.exit("not a little-endian PCAP file of Ethernet packets")
        while head := file.read(16):
            _, _, captured, original = struct.unpack("<IIII", head)
            yield file.read(captured), original


def addresses(packet):
    """Source and destination, or None if it is no IPv4."""
    at = 12
    while len(packet) >= at + 2 and struct.unpack_from(">H", packet, at)[0] == VLAN:
        at += 4
    if len(packet) < at + 22 or struct.unpack_from(">H", packet, at)[0] != IPV4:
        return None
    return packet[at + 14 : at + 18], packet[at + 18 : at + 22]


sums = collections.Counter()
for packet, original in packets(sys.argv[1]):
    pair = addresses(packet)
    if pair is not None:
        sums[tuple(sorted(pair))] += original
for (one, other), total in sums.most_common(10):
    print(f"{total:>12} {ipaddress.IPv4Address(one)} {ipaddress.IPv4Address(other)}")
