"""Headless Chromium, spoken to by the WebDriver protocol: no other package is needed."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.request import Request, urlopen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing is loaded from elsewhere
)


class Browser:
    """A window of a given width, with a profile of its own that is deleted at the end."""

    def __init__(self, width: int, height: int = 900) -> None:
        self.width, self.height = width, height

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._at = f"http://127.0.0.1:{port}"
        options = {
            "binary": CHROMIUM,
            "args": [*QUIET, f"--user-data-dir={self._profile.name}"],
            "mobileEmulation": {"deviceMetrics": {"width": self.width, "height": self.height, "pixelRatio": 1}},
        }
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self._wait()
        self._at += f"/session/{self._post('/session', wanted)['sessionId']}"
        return self

    def __exit__(self, *error: object) -> None:
        try:
            urlopen(Request(self._at, method="DELETE"), timeout=30).close()
        finally:
            self._driver.terminate()
            self._driver.wait()
            self._profile.cleanup()

    def _wait(self) -> None:
        for _ in range(300):
            try:
                urlopen(f"{self._at}/status", timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("chromedriver does not answer")

    def _post(self, path: str, body: dict) -> dict:
        request = Request(self._at + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def open(self, page: Path) -> None:
        """Load a page of the disk."""
        self._post("/url", {"url": page.resolve().as_uri()})

    def ask(self, script: str):
        """Value of a JavaScript function body."""
        return self._post("/execute/sync", {"script": script, "args": []})
