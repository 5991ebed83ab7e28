"""A statement as an entry of OpenDP's registry of deployments: YAML in the registry's own fields.

The schema is that of opendp/deployments-registry-data. What only a person can say stays a question in a comment; the
registry wants an answer to those marked as required.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .content import Content

#: Questions to a person, by field; those of the first are required by the registry.
REQUIRED = {
    "name": "the name of the data product",
    "data_curators": "who publishes it",
    "intended_use": "what it is for",
    "data_product_region": "the region that the data describe, or whose laws apply",
    "registry_authors": "who writes this entry",
}
OPTIONAL = {
    "data_product_sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    "data_domain": "data sets that could have been there",
    "data_source_type": "Static or Dynamic: whether new records come in",
    "post_processing": "what was done with the release afterwards",
    "justification": "why this epsilon and delta, and how they were validated",
    "sources": "links to papers, pages, and the release itself",
}
AUTHOR = "Author of this entry"
#: Indentation of a level.
INDENT = "  "


def as_deployment(content: Content) -> str:
    """The whole entry."""
    head = "# Entry for github.com/opendp/deployments-registry-data. Answer the questions, and delete their marks."
    return "\n".join([head, *_lines(_entry(content))]) + "\n"


def _entry(content: Content) -> dict[str, Any]:
    """Fields of the registry in its order; None: a question."""
    sections = {one.key: one for one in content.sections}
    said = {key: " ".join(one.sentences) for key, one in sections.items()}
    facts = {name: text for key in ("release", "unit", "curator") for name, text, *_ in sections[key].rows}
    about = {name: text for name, text in facts.items() if text != "not stated"}
    parts = [f"{name} (epsilon = {alone} alone): {how}." for name, alone, _, how in sections["composition"].rows]
    return {
        "url_slug": "-".join("".join(c if c.isalnum() else " " for c in about.get("Name", "draft").lower()).split()),
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": about.get("Name"),
                "data_curators": [about["Curator"]] if "Curator" in about else None,
                "intended_use": about.get("Intended use of the release"),
                "data_product_type": "Machine learning model" if "Model" in facts else "Summary statistics",
                "data_product_region": about.get("Region"),
                "description": _joined(sections["release"].rows) or content.title,
                "publication_date": content.date,
                "data_product_sector": about.get("Sector"),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if content.delta == 0 else "Approximate DP",
                "data_domain": about.get("Data set, and who is in it"),
                "unprotected_quantities": said["not_protected"],
            },
            "privacy_loss": {
                "privacy_unit": facts["Unit of privacy"],
                "privacy_unit_details": _joined(sections["unit"].rows[1:]),
                "privacy_parameters": {
                    **({"epsilon": content.epsilon} if math.isfinite(content.epsilon) else {}),
                    "delta": content.delta,
                },
                "privacy_parameters_details": said["parameters"] + f" By delta: {_joined(sections['parameters'].rows)}",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": said["trust"] + f" Recipients: {about.get('Who gets the release', 'not stated')}.",
                "release_type": "Many releases" if content.of_a_ledger else "One release",
                "release_type_details": said["summary"],
                "data_source_type": None,
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": None,
                "composition": " ".join([said["composition"], *parts, said["accounting"]]),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": " ".join([said["tuning"], said["assumptions"]]),
                "mechanisms": " ".join([*parts, said["randomness"], _joined(sections["versions"].rows[1:])]),
                "justification": about.get("Why this ε and δ"),
            },
            "administrative": {
                "sources": about.get("Sources"),
                "notes": f"{content.title}, {content.date}, written by the library that accounted for it.",
                "registry_authors": [about[AUTHOR]] if AUTHOR in about else None,
            },
        },
    }


def _joined(rows: Iterable[Sequence[str]]) -> str:
    return "; ".join(f"{name}: {text}" for name, text, *_ in rows)


def _lines(entry: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Lines of YAML, in which strings of JSON are strings."""
    for name, value in entry.items():
        if value is None:
            required = " (required)" if name in REQUIRED else ""
            yield f"{INDENT * depth}# {name}: {(REQUIRED | OPTIONAL)[name]}?{required}"
        elif isinstance(value, dict):
            yield f"{INDENT * depth}{name}:"
            yield from _lines(value, depth + 1)
        else:
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, float) and "e" in text and "." not in text:
                text = text.replace("e", ".0e")  # YAML 1.1 reads 1e-06 as a text
            yield f"{INDENT * depth}{name}: {text}"
