"""Prints each packet of a capture file as scapy reads it, one a line: time in nanoseconds, interface, original length,
captured bytes in hexadecimal.

Argument: the file. Warnings go to standard error, also those that scapy hides from programs by default.
"""
import logging
import sys
import warnings

warnings.simplefilter("default")
logging.getLogger("scapy").setLevel(logging.WARNING)

from scapy.utils import PcapReader  # noqa: E402

with PcapReader(sys.argv[1]) as packets:
    for packet in packets:
        ns = int(packet.time * 1_000_000_000)
        print(ns, packet.sniffed_on or "-", packet.wirelen, bytes(packet.original).hex())
