"""Downloads a time range of many devices into one PCAP file, and checks it against its receipt.

    CAPFLEET_TOKEN=... python3 minute.py https://gateway.example.net out.pcap --begin=-15m --end=now --bpf='udp port 53'
"""

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TRIES = 5


def reason_of(error):
    """What the gateway says; a proxy in front of it may answer with something else than JSON."""
    try:
        problem = json.loads(error.read())
        return f"{problem['code']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return error.reason


def open_url(gateway, path, query, token):
    """The answer. Busy gateways and devices are asked again, as long as they say."""
    request = urllib.request.Request(
        f"{gateway}{path}?{urllib.parse.urlencode(query)}",
        headers={"Authorization": f"Bearer {token}"},
    )
    for attempt in range(TRIES):
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == TRIES - 1:
                sys.exit(f"{error.code} {reason_of(error)}")
            time.sleep(int(error.headers.get("Retry-After", "1")))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gateway")
    parser.add_argument("file")
    parser.add_argument("--begin", required=True)
    parser.add_argument("--end", required=True)
    parser.add_argument("--bpf", default="")
    parser.add_argument("--devices", default="")
    given = parser.parse_args()
    token = os.environ["CAPFLEET_TOKEN"]
    query = {"TSBegin": given.begin, "TSEnd": given.end}
    if given.bpf:
        query["FilterBPF"] = given.bpf
    if given.devices:
        query["Device"] = given.devices
    with open_url(given.gateway, "/api/v1/pcap/timerange", query, token) as answer:
        request_id = answer.headers["Capfleet-Request-Id"]
        try:
            with open(given.file, "wb") as file:
                while chunk := answer.read(1 << 20):
                    file.write(chunk)
        except (http.client.IncompleteRead, ConnectionError):
            sys.exit(f"the download was cut; its receipt: {given.gateway}/v1/requests/{request_id}")
    with open_url(given.gateway, f"/v1/requests/{request_id}", {}, token) as answer:
        receipt = json.load(answer)
    print(f"{receipt['status']}: {receipt['packets']} packets")


main()
