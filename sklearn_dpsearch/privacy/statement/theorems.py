"""Theorems by the names of their bounds, with sources."""

from __future__ import annotations

from ..._site import SITE
from ..guarantees.base import Guarantee
from ..guarantees.relations import OfGroup
from ..guarantees.tightest import SmallestOf

COMPOSITION = "composition"
#: Pages with proofs.
THEORY = f"{SITE}/theory"
#: Beginning of a bound's name ↦ where it is stated and proved.
SOURCES = {
    "Theorem": f"sklearn_dpsearch, {THEORY}/index.html (statement, proof and tests)",
    "PS22": "Papernot & Steinke, Hyperparameter Tuning with Rényi Differential Privacy, ICLR 2022",
    "KRW24": "Koskela, Redberg & Wang, Privacy Profiles for Private Selection, ICML 2024",
    "KK23": "Koskela & Kulkarni, Practical Differentially Private Hyperparameter Tuning with Subsampling, NeurIPS 2023",
    COMPOSITION: f"sklearn_dpsearch, {THEORY}/composition.html (privacy loss distributions)",
}
OTHERWISE = f"sklearn_dpsearch, {THEORY}/index.html"


def searches(guarantee: Guarantee) -> list[SmallestOf]:
    """The searches inside a guarantee, which have several bounds."""
    if isinstance(guarantee, SmallestOf):
        return [guarantee]
    if isinstance(guarantee, OfGroup):
        return searches(guarantee.one_record)
    return [found for part in getattr(guarantee, "parts", ()) for found in searches(part)]


def theorem(guarantee: Guarantee, delta: float) -> str:
    """Name of the bound that gives ε of the first search inside; "composition" where there is none."""
    found = searches(guarantee)
    return found[0].tightest(delta) if found else COMPOSITION


def source(name: str) -> str:
    """Source and proof of the bound of this name."""
    return next((text for start, text in SOURCES.items() if name.startswith(start)), OTHERWISE)
