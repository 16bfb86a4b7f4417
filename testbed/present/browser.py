# SPDX-License-Identifier: GPL-2.0
"""Check of a page in a browser: headless Chromium, controlled through its debugging pipe without other software.

    python3 -m testbed.present.browser PAGE.html

The page is checked in light and dark mode, on a wide screen and on a phone's: no error on the console, no failed
request, no picture without size, no line wider than the screen, enough contrast of the text. Then a table is sorted and
a link into folded text is followed. Prints one line for each fault; exit status 1 if there is any.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ..base.errors import LbeError, exit_with

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: widths of the screens of a phone and a desktop, CSS pixels
WIDTHS = (380, 1200)
#: time limit for an answer of the browser, seconds
LIMIT_S = 60.0
#: WCAG 2.2, level AA, for body text
CONTRAST = 4.5

FAULTS = Path(__file__).with_name("browser_faults.js")
USE = Path(__file__).with_name("browser_use.js")


def program() -> str | None:
    """Path of the browser, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A headless Chromium with one page; a context manager."""

    def __init__(self) -> None:
        path = program()
        if path is None:
            raise LbeError(f"no browser: none of {', '.join(NAMES)} is here; scripts/deps browser installs one")
        self.profile = tempfile.TemporaryDirectory(prefix="lbe-browser.")
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        words = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += [
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile.name}",
        ]
        # the browser expects the pipe's ends as descriptors 3 and 4; duplicates from 100 on prevent that one dup2()
        # overwrites the other's source
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 100) for end in (theirs_read, theirs_write)]
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        ends = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate(high, 3)]
        self.pid = os.posix_spawn(path, [*words, "about:blank"], os.environ, file_actions=[*quiet, *ends])
        for end in (theirs_read, theirs_write, *high):
            os.close(end)
        self.read, self.write = ours_read, ours_write
        self.numbers, self.rest, self.session = itertools.count(1), b"", ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.read)
        os.close(self.write)
        # the killed browser's processes may hold files open for a moment
        for _try in range(20):
            try:
                self.profile.cleanup()
                break
            except OSError:
                time.sleep(0.1)

    def _message(self, until_s: float) -> dict[str, Any]:
        while b"\0" not in self.rest:
            left = until_s - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise LbeError(f"the browser did not answer within {LIMIT_S:g} s")
            data = os.read(self.read, 1 << 16)
            if not data:
                raise LbeError("the browser ended")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its answer; events that arrive in between are stored in ``events``."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        until_s = time.monotonic() + LIMIT_S
        while True:
            answer = self._message(until_s)
            if answer.get("id") == number:
                if "error" in answer:
                    raise LbeError(f"{method}: {answer['error'].get('message')}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, address: str) -> None:
        """Load a page and wait until it is loaded."""
        self.events = []
        self.call("Page.navigate", url=address)
        until_s = time.monotonic() + LIMIT_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(until_s))

    def value(self, script: str) -> Any:
        """Run a script in the page and return its value; a list with the message if it throws."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            return [f"script failed: {answer['exceptionDetails'].get('exception', {}).get('description')}"]
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors on the console, and requests to the network."""
        out = []
        for event in self.events:
            what = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                detail = what["exceptionDetails"]
                out.append(f"console: {detail.get('exception', {}).get('description', detail.get('text'))}")
            elif event.get("method") == "Runtime.consoleAPICalled" and what["type"] in ("error", "assert"):
                out.append("console: " + " ".join(str(one.get("value", "")) for one in what["args"]))
            elif event.get("method") == "Log.entryAdded" and what["entry"]["level"] == "error":
                out.append(f"console: {what['entry']['text']} {what['entry'].get('url', '')}".rstrip())
            elif event.get("method") == "Network.requestWillBeSent":
                url = what["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    out.append(f"asks the network for {url[:80]}")
        return out


def faults(page: Path) -> list[str]:
    """All faults of a page; an empty list if it has none."""
    out: list[str] = []
    faults_script = FAULTS.read_text(encoding="utf-8").replace("CONTRAST", str(CONTRAST))
    use_script = USE.read_text(encoding="utf-8")
    with Browser() as browser:
        for scheme in ("light", "dark"):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for width in WIDTHS:
                browser.call(
                    "Emulation.setDeviceMetricsOverride",
                    width=width,
                    height=800,
                    deviceScaleFactor=1,
                    mobile=width < 600,
                )
                browser.open(page.resolve().as_uri())
                found = browser.value(faults_script)
                # then again with all folded text unfolded
                found += browser.value(use_script) + browser.value(faults_script) + browser.complaints()
                out += [f"{scheme}, {width} px: {one}" for one in dict.fromkeys(found)]
        # sum of red, green and blue, 0 (black) to 765 (white): a dark background is far below the middle
        ground = (
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
        )
        if browser.value(ground) > 380:
            out.append("dark: the ground stays light")
    return out


def main(arguments: list[str]) -> int:
    """Check the given pages."""
    status = 0
    if not arguments or arguments[0].startswith("-"):
        print("usage: python3 -m testbed.present.browser PAGE.html...", file=sys.stderr)
        return 2
    for name in arguments:
        found = faults(Path(name))
        good = f"{name}: good in light and dark, at {WIDTHS[0]} and {WIDTHS[1]} px"
        print(*[f"{name}: {one}" for one in found] or [good], sep="\n")
        status |= bool(found)
    return status


if __name__ == "__main__":
    exit_with("testbed.present.browser", lambda: main(sys.argv[1:]))
