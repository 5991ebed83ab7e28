"""Printing and drawing of redrawn figures."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Curves = Mapping[str, tuple[np.ndarray, np.ndarray]]
Figure = tuple[Callable[[], Curves], str, str]


def show(figures: Mapping[str, Figure], prefix: str) -> None:
    """Print a few points of each figure (name to function, x label, y label); with ``--out FOLDER``
    draw it too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="folder for pictures (needs matplotlib)")
    show_all(figures, prefix, parser.parse_args().out)


def show_all(figures: Mapping[str, Figure], prefix: str, out: Path | None) -> None:
    """The same with a folder, or None."""
    for name, (make, x_label, y_label) in figures.items():
        curves = make()
        print(f"{name}: {y_label} by {x_label}")
        print_table(curves)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            draw(curves, x_label, y_label, out / f"{prefix}_{name}.png")


def print_table(curves: Curves, points: int = 6) -> None:
    """A few points (x, y) of each curve."""
    for name, (x, y) in curves.items():
        chosen = np.unique(np.linspace(0, x.size - 1, points).astype(int))
        print(f"  {name:40s}" + "".join(f"  ({x[i]:.3g}, {y[i]:.4g})" for i in chosen))


def draw(curves: Curves, x_label: str, y_label: str, path: Path) -> None:
    """One picture; dashed lines are the papers'."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.5))
    for name, (x, y) in curves.items():
        axes.plot(x, y, "--" if name.endswith(("PS22", "KRW24", "KK23")) else "-", label=name)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if y_label in ("delta", "expected number of runs"):
        axes.set_yscale("log")
    axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    plt.close(figure)
