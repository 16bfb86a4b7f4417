#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Download a file over HTTP in the background: download.py URL FILE [SECONDS]

After SECONDS, if given, the download goes on in the foreground.
"""

import socket
import sys
import time
import urllib.request
from typing import Any

import vulture


def connection_of(response: Any) -> socket.socket:
    """The socket below urllib's response, which has no public name for it."""
    connection: socket.socket = response.fp.raw._sock
    return connection


def main() -> int:
    """Exit status 2 for a wrong command line, 1 if the kernel refuses, else 0."""
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    url, path = sys.argv[1:3]
    patience_s = float(sys.argv[3]) if len(sys.argv) == 4 else float("inf")
    began = time.monotonic()
    with urllib.request.urlopen(url) as response, open(path, "wb") as file, vulture.Vulture() as v:
        connection = connection_of(response)
        try:
            v.start(connection)
        except OSError as error:
            print(f"download: {error.strerror}", file=sys.stderr)
            return 1
        background = True
        while block := response.read(65536):
            file.write(block)
            if background and time.monotonic() - began > patience_s:
                v.stop(connection)
                background = False
    return 0


if __name__ == "__main__":
    sys.exit(main())
