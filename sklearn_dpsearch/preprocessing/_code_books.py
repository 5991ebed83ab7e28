"""Code books as people write them: JSON Schema, Frictionless Table Schema, and lists of codes."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..data._lists import WHOLE_NUMBER, said_by

#: Word of a code book ↦ word of a schema.
WORDS = {
    **dict.fromkeys(("min", "minimum", "exclusiveMinimum"), "lower"),
    **dict.fromkeys(("max", "maximum", "exclusiveMaximum"), "upper"),
    **dict.fromkeys(("enum", "categories"), "values"),
}
#: Words of a schema's entry.
OPTIONS = frozenset({"lower", "upper", "bins", "scale", "values", "buckets", "direction"})
#: Words of a code book that say nothing about values.
_SILENT_WORDS = """
$comment default deprecated description example examples format label maxLength minLength multipleOf
name pattern rdfType readOnly required title unique unit
"""
SILENT_WORDS = frozenset(_SILENT_WORDS.split())
#: Words of JSON Schema for a list of alternatives.
ALTERNATIVES = ("oneOf", "anyOf")
#: Type of a code book ↦ kind of the values.
TYPES = {
    **dict.fromkeys(("integer", "number"), "numbers"),
    "string": "text",
    "boolean": "flags",
    **dict.fromkeys(("date", "datetime"), "dates"),
}


class CodeBookEntry(NamedTuple):
    """Entry in a schema's words, and the declared kind of its values; empty if undeclared."""

    entry: Any
    kind: str = ""


def columns_of_book(book: Any) -> Any:
    """Entries of a code book by column: JSON Schema's properties, Frictionless fields, or all."""
    if not isinstance(book, Mapping):
        return book
    if book.get("type") == "object" and isinstance(book.get("properties"), Mapping):
        return book["properties"]
    for outer in ("schema", "resources"):
        inner = book.get(outer)
        inner = inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
        if isinstance(inner, Mapping) and ("fields" in inner or "schema" in inner):
            return columns_of_book(inner)
    fields = book.get("fields")
    if not isinstance(fields, list):
        return book
    named = all(isinstance(field, Mapping) and "name" in field for field in fields)
    return {field["name"]: field for field in fields} if named else book


def read_book(path: str | Path) -> Any:
    """Read a code book from a file of JSON or YAML."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text) if str(path).endswith(".json") else yaml_module().safe_load(text)


def entry_error(name: str, entry: str, problem: str) -> ValueError:
    """Error for an entry of a schema, with its problem as the end of a sentence."""
    return ValueError(f"Found {entry} for column {name!r} of the schema{problem}")


def yaml_module() -> Any:
    """Module of PyYAML, or an error with the remedy."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError("A schema as YAML needs PyYAML: pip install pyyaml.") from error
    return yaml


def entry_of(name: str, stated: Any) -> CodeBookEntry:
    """Entry of a schema for an entry of a code book; others as they are.

    Raises
    ------
    ValueError
        For words that are not known, and for a type without the values or the ends that a schema
        needs.
    """
    if not isinstance(stated, Mapping) or not stated:
        return CodeBookEntry(stated)
    stated = _without_alternatives(stated)
    vocabulary = {*WORDS, *OPTIONS, *SILENT_WORDS, "type", "constraints"}
    words = {key for key in stated if isinstance(key, str) and key in vocabulary}
    if not words and all(isinstance(label, str) for label in stated.values()):
        return _codes_with_labels(list(stated))
    flat = {**stated, **(stated.get("constraints") or {})}
    declared = _declared_kind(name, flat.pop("type", None))
    flat.pop("constraints", None)
    entry = {WORDS.get(key, key): value for key, value in flat.items() if key not in SILENT_WORDS}
    if declared == "flags" and not entry:
        return CodeBookEntry([False, True], declared)
    if not declared:
        return CodeBookEntry(entry)
    if not entry.keys() & {"values", "buckets"} and not {"lower", "upper"} <= entry.keys():
        of_text = "the list of all values, {'enum': ['a', 'b']}, or {'buckets': 64},"
        remedy = of_text if declared == "text" else "both ends, {'minimum': 0, 'maximum': 99},"
        problem = f", which does not say what the column may hold; {remedy} is needed."
        raise entry_error(name, repr(dict(stated)), problem)
    if "values" in entry:
        values = (value for value in entry["values"] if value is not None)
        entry["values"] = [_in_kind(value, declared) for value in values]
    return CodeBookEntry(entry, declared)


def _without_alternatives(stated: Mapping[str, Any]) -> Mapping[str, Any]:
    """Entry with constants as ``enum``, or the only alternative beside null in place of both."""
    for word in ALTERNATIVES:
        alternatives = stated.get(word)
        if not isinstance(alternatives, list):
            continue
        if not all(isinstance(alternative, Mapping) for alternative in alternatives):
            continue
        entry = {key: value for key, value in stated.items() if key != word}
        options = [option for option in alternatives if option.get("type") != "null"]
        not_null = [option for option in options if option.get("const", 0) is not None]
        if not_null and all("const" in alternative for alternative in not_null):
            return {**entry, "enum": [alternative["const"] for alternative in not_null]}
        if len(not_null) == 1:
            return {**entry, **not_null[0]}
    return stated


def _codes_with_labels(codes: list[Any]) -> CodeBookEntry:
    """Codes of a dictionary from codes to labels; whole numbers in text are numbers, as in JSON."""
    if all(isinstance(code, str) and WHOLE_NUMBER.fullmatch(code) for code in codes):
        codes = list(map(said_by, codes))
    are_numbers = all(isinstance(code, numbers.Real) for code in codes)
    return CodeBookEntry({"values": codes}, "numbers" if are_numbers else "")


def _declared_kind(name: str, stated: Any) -> str:
    kinds = stated if isinstance(stated, list) else [stated]
    kinds = [kind for kind in kinds if kind != "null"]
    if kinds == [None]:
        return ""
    if len(kinds) != 1 or kinds[0] not in TYPES:
        needed = f"; one of {sorted(TYPES)} is needed, or none."
        raise entry_error(name, f"type={stated!r}", needed)
    return TYPES[kinds[0]]


def _in_kind(value: Any, declared: str) -> Any:
    """Value in its declared kind: files have texts for numbers, and numbers for texts."""
    if declared == "numbers" and isinstance(value, str) and WHOLE_NUMBER.fullmatch(value):
        return said_by(value)
    return str(value) if declared == "text" and not isinstance(value, bool) else value
