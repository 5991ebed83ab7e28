"""The report object: a statement in one of its forms, to be looked at or saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...errors import did_you_mean
from .as_deployment import as_deployment
from .as_html import article, as_html
from .as_markdown import as_markdown
from .content import Content

#: Form ↦ how it is written.
FORMS: dict[str, Callable[[Content], str]] = {"html": as_html, "markdown": as_markdown, "deployment": as_deployment}


@dataclass(frozen=True, kw_only=True)
class Report:
    """Report for a data-protection officer. Prints as its text; notebooks show it.

    Parameters
    ----------
    content : Content
        Content by section, equal in every form.
    form : {"html", "markdown", "deployment"}
    """

    content: Content
    form: str

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            hint = did_you_mean(str(self.form), FORMS)
            raise ValueError(f"Found format={self.form!r}; one of {', '.join(map(repr, FORMS))} is needed.{hint}")

    def __str__(self) -> str:
        return FORMS[self.form](self.content)

    def __repr__(self) -> str:
        return f"<{self.content.title}, {self.content.date}, as {self.form}: save(path), or str() for the text>"

    def _repr_html_(self) -> str:
        return article(self.content)

    def save(self, path: str | Path) -> Path:
        """Write the text to a file.

        Parameters
        ----------
        path : str or Path
            A name that ends with .yaml asks for the entry of a registry of deployments, whatever the form.

        Returns
        -------
        Path
            Where it is.
        """
        as_entry = Path(path).suffix in (".yaml", ".yml")
        Path(path).write_text(as_deployment(self.content) if as_entry else str(self), encoding="utf-8")
        return Path(path)
