"""Notebook display of a search: its cost and its release, above scikit-learn's diagram."""

from __future__ import annotations

import math
from html import escape
from types import SimpleNamespace
from typing import Any

from sklearn import get_config

from ..privacy._statement.content import clean, short_up, up
from ._planning.plan import Plan
from ._records import columns_read

#: Most lines of a search's text.
MOST_LINES = 18
#: Longer descriptions of parameters are cut.
LONGEST_TEXT = 200
#: Readable in light and dark notebooks, as it takes over their colours.
BOX = (
    "border: 1px solid currentColor; border-radius: 4px; padding: 0.4em 0.8em; margin: 0 0 0.5em; "
    "width: fit-content;"
)
NO_MODEL = "The last fit ended without a result. Its cost is spent."
KNOWN_SEED = "A known seed was used: the guarantee does not hold against anyone who knows the seed."
NOT_FOUND = "The search ended without a candidate, which is a result like any other."


class ShownInNotebooks:
    """Text, box and diagram of a search, with its released model where there is one.

    Only parameters of the search and what it released are shown.
    """

    estimator: Any

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Parameters as scikit-learn shows them; a long schema is cut in the middle."""
        lines = super().__repr__(N_CHAR_MAX).splitlines()  # type: ignore[call-arg]
        half = MOST_LINES // 2
        if len(lines) > MOST_LINES:
            lines = [*lines[:half], "    ...", *lines[-half + 1 :]]
        return "\n".join(lines)

    def _sk_visual_block_(self) -> Any:
        """One child: the released model, or before ``fit`` the estimator."""
        name = "best_estimator_" if hasattr(self, "best_estimator_") else "estimator"
        model = getattr(self, name)
        return SimpleNamespace(
            kind="parallel",
            estimators=[model],
            names=[f"{name}: {type(model).__name__}"],
            name_details=[words_of(model)],
            name_caption=None,
            doc_link_label=None,
            dash_wrapped=True,
        )

    def _repr_html_inner(self) -> str:
        """Box, and scikit-learn's diagram, or names where an estimator cannot describe itself."""
        try:
            diagram = str(super()._repr_html_inner())  # type: ignore[misc]
        # a foreign estimator may raise any error when it is asked for its parameters
        except Exception:
            inner = escape(type(self.estimator).__name__)
            diagram = f"<pre>{escape(type(self).__name__)}(estimator={inner}(...))</pre>"
        return box(self) + diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Text and HTML, for notebooks that ask for several forms."""
        forms = {"text/plain": words_of(self, longest=10**6)}
        if get_config()["display"] == "diagram":
            forms["text/html"] = self._repr_html_inner()
        return forms


def words_of(value: object, longest: int = LONGEST_TEXT) -> str:
    """Representation of an object, cut; its class where ``repr`` fails."""
    try:
        text = repr(value)
    except Exception:  # of a foreign class, as above
        return f"{type(value).__name__}(...)"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plan_in_words(search: Any, plan: Plan) -> str:
    """A plan and its cost, which are known without the data, and the columns that are read."""
    spent = plan.spent
    epsilon, delta = up(spent.epsilon), short_up(spent.delta)
    cost = f"epsilon = {epsilon} at delta = {delta} for any one {spent.unit}"
    line = f"[{type(search).__name__}] {plan.work}the whole fit costs {cost}"
    return "\n  ".join([line, *columns_read(search.estimator)])


def box(search: Any) -> str:
    """HTML box with facts known without any record, and with the release."""
    lines = _spent(search) if hasattr(search, "privacy_spent_") else _asked(search)
    body = "".join(f"<div>{line}</div>" for line in lines)
    return f'<div class="dpsearch" style="{BOX}">{body}</div>'


def _asked(search: Any) -> list[str]:
    """Request before ``fit``. The cost is not shown: ``privacy_cost()`` computes it."""
    delta = "" if search.delta is None else f", δ = {escape(words_of(search.delta))}"
    total = f"the estimator runs as configured{delta}. <code>privacy_cost()</code> says the total"
    if search.epsilon is not None:
        epsilon = f"<b>ε = {escape(words_of(search.epsilon))}</b>"
        total = f"asked for: {epsilon}{delta} for all that is released"
    return [f"Not fitted; {total}."]


def _spent(search: Any) -> list[str]:
    spent = search.privacy_spent_
    unit = "" if spent.unit == "record" else f"; unit: {escape(clean(spent.unit))}"
    relation = f"({escape(spent.neighboring)} neighbours{unit})"
    cost = f"<b>ε = {up(spent.epsilon)}</b> at δ = {short_up(spent.delta)} {relation}"
    void = [KNOWN_SEED] if spent.release is not None and spent.release.seeded else []
    if not hasattr(search, "scorer_"):
        return [f"Spent: {cost}", *void, NO_MODEL]
    release = [NOT_FOUND]
    if hasattr(search, "best_params_"):
        parameters = escape(clean(words_of(search.best_params_)))
        release = [f"best_params_: <code>{parameters}</code>", *_score(search)]
    return [f"Spent, with tuning included: {cost}", *void, *release]


def _score(search: Any) -> list[str]:
    score, noise = float(search.best_score_), float(getattr(search, "best_score_std_", 0.0))
    if not math.isfinite(score):
        return []  # the choice was released without a score
    beside = f" ± {noise:.3g} (standard error of its noise)" if noise > 0 else ""
    return [f"best_score_: {score:.4g}{beside}"]
