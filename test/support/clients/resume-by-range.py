"""A download script as people write it: asks for the rest by Range after a failure, and appends what comes.

Arguments: urllib or requests, address, Authorization, file. Ends with 0 when the library has seen no failure.
"""
import os
import sys

library, url, authorization, path = sys.argv[1:5]
TRIES = 3


def chunks_by_urllib(headers):
    from urllib.request import Request, urlopen

    with urlopen(Request(url, headers=headers)) as answer:
        while chunk := answer.read(65536):
            yield chunk


def chunks_by_requests(headers):
    import requests

    with requests.get(url, headers=headers, stream=True) as answer:
        answer.raise_for_status()
        yield from answer.iter_content(65536)


def resume():
    have = os.path.getsize(path) if os.path.exists(path) else 0
    headers = {"Authorization": authorization}
    if have > 0:
        headers["Range"] = f"bytes={have}-"
    chunks = chunks_by_urllib if library == "urllib" else chunks_by_requests
    with open(path, "ab") as file:
        for chunk in chunks(headers):
            file.write(chunk)


for left in reversed(range(TRIES)):
    try:
        resume()
        sys.exit(0)
    except Exception as error:
        print(repr(error), file=sys.stderr)
sys.exit(1)
