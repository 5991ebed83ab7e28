"""Reasons why tasks could not be run: a few fixed sentences, without the text of the error.

The text of an error, and the name of its class, may come from the user's code, which saw the records.
"""

from __future__ import annotations

from ...privacy import PrivacyError
from ..private_process import PrivateProcessError

START = "The candidates could not be run by joblib, so there is no model."
OTHERWISE = (
    "Workers need enough memory, this library, and the modules of estimators and scorers. Try the search on public or "
    "made-up data with the same workers."
)
#: Names of errors and what they say.
SENTENCES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"MemoryError"}), "There is not enough memory. Use fewer workers (n_jobs)."),
    (
        frozenset({"KilledWorker", "FutureCancelledError", "FuturesCancelledError", "ResultsLost"}),
        "Workers of the cluster ended before their tasks did, again and again: usually for want of memory, or compiled "
        "code crashed. Give workers more memory, or try the candidates on public or made-up data.",
    ),
    (
        frozenset({"TimeoutError"}),
        "The cluster has no workers. Start some, or wait for them longer: parallel_config('dask', "
        "wait_for_workers_timeout=120).",
    ),
    (
        frozenset({"OSError", "BlockingIOError"}),
        "The operating system refused a process, a file or a connection: see its limits on processes, open files and "
        "disks. Use fewer workers (n_jobs).",
    ),
)


class LeakDetected(Exception):
    """Error for an estimator that warns that it reads the data without noise."""


class WorkersError(RuntimeError):
    """Error for candidates that could not be run."""


def why(error: BaseException) -> Exception:
    """Error with fixed words, to be raised outside of the handler."""
    if isinstance(error, (PrivateProcessError, PrivacyError)):
        return type(error)(str(error))
    names = {kind.__name__ for kind in type(error).__mro__}
    sentence = next((sentence for known, sentence in SENTENCES if known & names), OTHERWISE)
    return WorkersError(f"{START} {sentence}")
