"""Headless Chromium, which is asked once for many pages: no driver and no other package is
needed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
    "--allow-file-access-from-files",  # the page around the frames reads them
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing is loaded from elsewhere
)  # fmt: skip
#: Pages that are loaded at a time.
TOGETHER = 20
#: A page of frames, whose text becomes the answers. A frame may be narrower than the least window
#: of Chromium.
FRAMES = """<!doctype html><meta charset="utf-8"><body>{frames}<script>
addEventListener("load", () => {{
  const answer = frame => new frame.contentWindow.Function({script})();
  document.body.textContent = JSON.stringify([...document.querySelectorAll("iframe")].map(answer));
}});
</script>"""
FRAME = '<iframe src="{page}" style="width: {width}px; height: 900px; border: 0"></iframe>'


def ask(pages: Sequence[Path], width: int, script: str, folder: Path) -> list[Any]:
    """Value of a JavaScript function body on each page, in a window of a width; ``folder`` is for
    Chromium's files."""
    parts = [pages[start : start + TOGETHER] for start in range(0, len(pages), TOGETHER)]
    return [answer for part in parts for answer in _ask(part, width, script, folder)]


def _ask(pages: Sequence[Path], width: int, script: str, folder: Path) -> list[Any]:
    around = folder / "frames.html"
    frames = "".join(FRAME.format(page=page.resolve().as_uri(), width=width) for page in pages)
    around.write_text(FRAMES.format(frames=frames, script=json.dumps(script)), encoding="utf-8")
    command = [
        CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", around.as_uri(),
    ]  # fmt: skip
    dumped = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=300, check=True
    ).stdout
    return json.loads(html.unescape(re.search(r"<body>(.*)</body>", dumped, re.DOTALL)[1]))
