"""Sums of hinges: what they are the largest of."""

from __future__ import annotations

import numpy as np
import pytest

from sklearn_dpsearch.privacy.selection.testing_region import AffineLines, upper_envelope


@pytest.mark.slow
def test_hinges_are_the_upper_envelope_of_their_lines() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(1, 30))
        lines = AffineLines(rng.random(n) * 10, rng.random(n) * (rng.random(n) > 0.1))
        hinges = upper_envelope(lines)
        for z in np.append(0.0, rng.exponential(5.0, 20)):
            envelope = max(0.0, float(np.max(lines.height - z * lines.fall)))
            value = float(np.sum(hinges.weights * np.maximum(1 - z / hinges.ends, 0.0)))
            assert value == pytest.approx(envelope, rel=1e-9, abs=1e-12)
