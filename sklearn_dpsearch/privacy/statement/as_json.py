"""A statement as JSON: for registries and machines. Nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from .content import Content, Section

#: Of the layout below.
VERSION = 1


def as_json(content: Content) -> str:
    """The whole statement; its key ``statement`` holds the guarantee, which ``privacy.from_dict`` reads."""
    return json.dumps(as_dict(content), indent=2, ensure_ascii=False, allow_nan=False)


def as_dict(content: Content) -> dict[str, Any]:
    """Content of a statement as plain values."""
    return {
        "version": VERSION,
        "title": content.title,
        "date": content.date,
        "sections": {section.key: _section(section) for section in content.sections},
        "statement": content.statement,
    }


def _section(section: Section) -> dict[str, Any]:
    told: dict[str, Any] = {"title": section.title, "sentences": list(section.sentences)}
    if section.rows:
        told["columns"] = list(section.columns)
        told["rows"] = [[cell._asdict() for cell in row] for row in section.rows]
    if section.curve is not None:
        told["curve"] = {
            "false_positive_rates": section.curve.false_positive_rates.tolist(),
            "true_positive_rates": section.curve.true_positive_rates.tolist(),
        }
    return told
