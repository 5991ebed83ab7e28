"""Failures and warnings of other code: contained in private processes, where nothing is an interrupt of the user's."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator

#: Variable of the environment, which processes that a candidate starts have too.
PRIVATE = "SKLEARN_DPSEARCH_PRIVATE_PROCESS"


def become_private() -> None:
    """Mark this process, and all that it starts, as one that does private work."""
    os.environ[PRIVATE] = "1"


def is_private() -> bool:
    """Return whether this process does private work."""
    return PRIVATE in os.environ


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Contain the failure of one candidate: of any type in a private process, which no interrupt reaches."""
    try:
        yield
    except Exception:
        pass
    except BaseException:
        if not is_private():
            raise


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Drop warnings of the libraries underneath."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
