"""One way to break the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A mistake that real projects make, as a change of this library's text.

    Parameters
    ----------
    mistake : str
        One sentence: what is wrong with it.
    file : str
        Below ``sklearn_dpsearch``.
    old, new : str
        The text to replace, found exactly once in the file, and what stands there instead.
    test : str
        A test file that notices, below ``tests``; with ``::`` one test of it.
    name : str
        In the table, the key of its row.
    """

    mistake: str
    file: str
    old: str
    new: str
    test: str
    name: str = ""

    def apply(self, root: Path) -> None:
        """Break the copy of the library in ``root``."""
        path = root / "sklearn_dpsearch" / self.file
        text = path.read_text()
        self.check(text)
        path.write_text(text.replace(self.old, self.new))

    def check(self, text: str) -> None:
        """Raise unless the text to replace is there exactly once."""
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise ValueError(
                f"Mutant {self.name!r}: its text was found {found} times in {self.file}, and is "
                "needed once. The file has changed: bring the table up to date."
            )
