"""Curves of a model of a table: the effect of each value of a column, with the noise as a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ._drawing import LOOKS, Display, Look

#: Panels beside each other, and inches of one.
PANELS_PER_ROW, PANEL_WIDTH, PANEL_HEIGHT = 3, 3.6, 2.8
PARTIAL_CURVES = "the model is more than the sum of these curves"


@dataclass(kw_only=True, eq=False)
class ShapeDisplay(Display):
    """Display of the effect of each value of each column.

    Values are in the column's own unit, effects have the standard deviation of their noise.

    It follows from the schema and the released weights: no record is needed, and it costs no
    privacy.

    Parameters
    ----------
    shapes : dict of str to ColumnShape
        By column, as ``DPTabularClassifier.shapes`` and ``DPGradientBoostingClassifier.shapes``
        return them.
    curves : list of str
        Unit of the effects; of more than two classes, the class of each curve.
    partial : bool
        Whether the model is more than the sum of the shapes: it has hidden layers, or cells of
        several columns.

    Attributes
    ----------
    axes_ : list of matplotlib axes
        One panel for each column.
    ax_, figure_ : matplotlib axes and figure
        The first panel, and its figure.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn_dpsearch.nets import DPTabularClassifier
    >>> table = pd.DataFrame({"age": np.arange(2000) % 60 + 20})
    >>> facts = {"classes": [0, 1], "target_epsilon": 1.0, "target_delta": 1e-5}
    >>> net = DPTabularClassifier({"age": (20, 80)}, hidden_layer_sizes=(), **facts)
    >>> display = ShapeDisplay.from_estimator(net.fit(table, (table["age"] - 50).abs() < 15))
    >>> shape = display.shapes["age"]
    >>> [round(float(age), 1) for age in shape.values[shape.effects[0] > 0][[0, -1]]]
    [35.0, 65.0]
    """

    shapes: Mapping[str, Any]
    curves: list[str]
    partial: bool

    @classmethod
    def from_estimator(
        cls, estimator: Any, columns: str | Sequence[str] | None = None
    ) -> ShapeDisplay:
        """Compute the shapes of a fitted model.

        Parameters
        ----------
        estimator : model with ``shapes``, or pipeline of a TableEncoder and a linear model
            A net or a boosting model for tables, or a search that released one.
        columns : str or sequence of str, optional
            Columns of the schema, or one of them; None: all.

        Returns
        -------
        ShapeDisplay
        """
        columns = [columns] if isinstance(columns, str) else columns
        model = getattr(estimator, "best_estimator_", estimator)
        shapes = _column_shapes(model, columns)
        last = model[-1] if isinstance(model, Pipeline) else model
        classes = list(getattr(last, "classes_", ()))
        names = list(map(str, classes)) or ["prediction"]
        curves = [f"log odds of {classes[1]}"] if len(classes) == 2 else names
        has_hidden_layers = bool(getattr(last, "hidden_layer_sizes_", ()))
        partial = has_hidden_layers or getattr(last, "max_features_per_cell", 1) > 1
        return cls(shapes=shapes, curves=curves, partial=partial)

    def plot(self, ax: Any = None) -> ShapeDisplay:
        """Draw a panel for each column.

        Parameters
        ----------
        ax : matplotlib axes or sequence of them, optional
            One for each panel; None: a new figure.

        Returns
        -------
        self : object
        """
        self.axes_ = self._panels() if ax is None else list(np.atleast_1d(ax).ravel())
        if len(self.axes_) != len(self.shapes):
            needed = f"{len(self.shapes)} are needed, one for each panel."
            raise ValueError(f"Found {len(self.axes_)} axes; {needed}")
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        for panel, (name, shape) in zip(self.axes_, self.shapes.items()):
            panel.axhline(0.0, color=LOOKS[6].color, linewidth=0.8, linestyle=":")
            draw = _draw_list if shape.of_list else _draw_curve
            for curve, (label, look) in enumerate(zip(self.curves, LOOKS * len(self.curves))):
                draw(panel, shape, curve, label, look)
            panel.set(xlabel=name)
        self.ax_.set(ylabel=self.curves[0])
        if len(self.curves) > 1:
            self.ax_.set(ylabel="log probability, less the mean")
            self.ax_.legend()
        if self.partial:
            self.ax_.set_title(PARTIAL_CURVES, loc="left", fontsize="small")
        return self

    def _panels(self) -> list[Any]:
        """New axes with one scale of effects, for each column."""
        first = self._start(None)
        beside, count = (min(PANELS_PER_ROW, len(self.shapes)), len(self.shapes))
        figure, below = first.figure, math.ceil(count / beside)
        first.remove()
        figure.set_size_inches(PANEL_WIDTH * beside, PANEL_HEIGHT * below)
        panels = list(figure.subplots(below, beside, sharey=True, squeeze=False).ravel())
        for empty in panels[count:]:
            empty.remove()
        return panels[:count]


def _column_shapes(model: Any, columns: Sequence[str] | None) -> Any:
    """Shapes of the columns of a fitted model, by name."""
    is_encoded = isinstance(model, Pipeline) and len(model) == 2 and hasattr(model[0], "shapes")
    if is_encoded and hasattr(model[1], "coef_"):
        return model[0].shapes(model[1].coef_, getattr(model[1], "coef_noise_", None), columns)
    if hasattr(model, "shapes"):
        return model.shapes(columns)
    raise TypeError(
        f"Found {type(model).__name__}; a fitted net for data frames, boosting for tables, or a "
        "pipeline of a TableEncoder and a model with coef_ is needed."
    )


def _draw_curve(panel: Any, shape: Any, curve: int, label: str, look: Look) -> None:
    """Draw the effect of a range of values, with its noise."""
    effects = shape.effects[curve]
    panel.plot(shape.values, effects, label=label, **look.line)
    if shape.noise is not None:
        noise = shape.noise[curve]
        low, high = effects - noise, effects + noise
        panel.fill_between(shape.values, low, high, color=look.color, alpha=0.25, linewidth=0)


def _draw_list(panel: Any, shape: Any, curve: int, label: str, look: Look) -> None:
    """Draw the effect of listed values as points.

    Points of several classes are beside each other.
    """
    places = np.arange(len(shape.values)) + 0.08 * curve
    noise = None if shape.noise is None else shape.noise[curve]
    style = {"fmt": look.marker, "color": look.color, "capsize": 2}
    panel.errorbar(places, shape.effects[curve], yerr=noise, label=label, **style)
    names = list(map(str, shape.values))
    panel.set_xticks(np.arange(len(names)), names, rotation=90, fontsize="small")
