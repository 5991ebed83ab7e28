"""What tests of several folders start from."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where Python was started with SIGINT ignored, as background jobs of a shell are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
