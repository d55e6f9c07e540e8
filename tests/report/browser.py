# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One Chromium that shows many pages: wide, narrow, light, dark, printed. It is spoken to over two pipes.

browser.py PAGE PICTURE    save a picture of a page, 1280 pixels wide
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tools")]

import packages

PROGRAM = next(filter(None, map(shutil.which, packages.BROWSERS.split("|"))), None)
MISSING = (
    ""
    if PROGRAM and shutil.which("pdftotext")
    else ("no Chromium or no pdftotext on PATH; run: apt-get install chromium-headless-shell poppler-utils")
)
HEADLESS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
]


class Browser:
    """A Chromium with one page, by the DevTools protocol: JSON messages, each ended by a zero byte."""

    def __init__(self, profile):
        argv = [PROGRAM, *HEADLESS, "--hide-scrollbars", f"--user-data-dir={profile}"]
        reads, chromium_writes = os.pipe()
        chromium_reads, writes = os.pipe()
        # Chromium reads from 3 and writes to 4.
        line = f'exec "$@" 0<&{chromium_reads} 4>&{chromium_writes} 3<&0 0</dev/null'
        self.process = subprocess.Popen(
            ["bash", "-c", line, "bash", *argv, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(chromium_reads, chromium_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(chromium_reads)
        os.close(chromium_writes)
        self._in, self._out = os.fdopen(reads, "rb"), os.fdopen(writes, "wb")
        self._numbers, self._session, self._rest = itertools.count(1), {}, b""
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self("Page.enable")

    def _message(self):
        while b"\0" not in self._rest:
            data = os.read(self._in.fileno(), 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def __call__(self, method, event=None, **params):
        """Return a method's result; with an event, wait for that as well."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, **self._session}
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        result, seen = None, event is None
        while result is None or not seen:
            answer = self._message()
            seen = seen or answer.get("method") == event
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer)
                result = answer["result"]
        return result

    def view(self, width, scheme):
        """Give the window a width, and the system a theme."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 700)
        self("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def load(self, address):
        """Load a page; by way of another one, since a new fragment alone loads nothing."""
        for url in ("about:blank", address):
            self("Page.navigate", "Page.loadEventFired", url=url)

    def value(self, expression):
        """Return what an expression is in the page."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, path):
        """Write a picture of the whole page, also of what is below the window."""
        clip = {**self("Page.getLayoutMetrics")["cssContentSize"], "scale": 1}
        shot = self("Page.captureScreenshot", captureBeyondViewport=True, optimizeForSpeed=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self, path):
        """Write the page as it is printed."""
        path.write_bytes(base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True)["data"]))

    def close(self):
        with contextlib.suppress(AssertionError):
            self("Browser.close")
        self.process.wait(60)
        self._in.close()
        self._out.close()


def main(page, picture):
    """Save a picture of a page."""
    with tempfile.TemporaryDirectory() as profile:
        shown = Browser(profile)
        shown.view(1280, "light")
        shown.load(Path(page).resolve().as_uri())
        shown.picture(Path(picture))
        shown.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
