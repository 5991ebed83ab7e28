"""Reasons why joblib could not run the tasks: a few fixed sentences, without the text of the error.

The text of an error, and the name of its class, may come from the user's code, which saw the records.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pickle import PicklingError

from joblib.externals.loky.process_executor import TerminatedWorkerError

#: Error numbers of the operating system for a full disk or quota.
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class FailedThere(Exception):
    """Error in another process, of which only fixed words arrive."""


class LeakDetected(FailedThere):
    """Error for an estimator that warns that it reads the data without noise."""


class NotWritable(PicklingError):
    """Error for an object that could not be pickled to leave its process."""


class NotReadable(Exception):
    """Error for an object that could not be unpickled in the receiving process."""


def why(error: BaseException) -> RuntimeError:
    """Error with fixed words, to be raised outside of the handler."""
    if isinstance(error, FailedThere):
        return RuntimeError(str(error))
    for applies, sentence in SENTENCES:
        if any(applies(cause) for cause in _chain(error)):
            return RuntimeError(f"{START} {sentence}")
    return RuntimeError(f"{START} {OTHERWISE}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, also those in a worker."""
    found: BaseException | None = error
    for _ in range(10):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _full(error: BaseException) -> bool:
    """Return whether a disk is full: workers send tracebacks as text, with the error number of the system."""
    text = str(getattr(error, "tb", "")) if type(error).__name__ == "_RemoteTraceback" else ""
    return (isinstance(error, OSError) and error.errno in FULL) or any(
        f"OSError: [Errno {number}]" in text for number in FULL
    )


def _named(*names: str) -> Callable[[BaseException], bool]:
    """Recognise errors of optional libraries by name."""
    return lambda error: type(error).__name__ in names


def _of(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    return lambda error: isinstance(error, kinds)


START = "The candidates could not be run by joblib, so there is no model."
OTHERWISE = (
    "Estimators and scorers must be picklable, and workers must have enough memory; n_jobs=1 needs neither. Try the "
    "search on public or made-up data with the same n_jobs."
)
#: In this order: a full disk also shows as a task that could not be pickled.
SENTENCES: tuple[tuple[Callable[[BaseException], bool], str], ...] = (
    (
        _full,
        "A disk is full: joblib writes large arrays to a temporary folder for its workers. Free some space, name "
        "another folder in the environment variable JOBLIB_TEMP_FOLDER, or use n_jobs=1.",
    ),
    (
        _of(MemoryError),
        "There is not enough memory. Use fewer workers (n_jobs), or n_jobs=1, which makes no copies of the data.",
    ),
    (
        _of(TerminatedWorkerError, BrokenExecutor),
        "A worker process ended before its task did: usually the system ended it for want of memory, or compiled code "
        "crashed. Use fewer workers (n_jobs), or try the candidates on public or made-up data.",
    ),
    (
        _named(
            "KilledWorker",
            "FutureCancelledError",
            "FuturesCancelledError",
            "RayActorError",
            "ActorDiedError",
            "ResultsLost",
        ),
        "Workers of the cluster ended before their tasks did, again and again: usually for want of memory, or compiled "
        "code crashed. Give workers more memory, or try the candidates on public or made-up data.",
    ),
    (
        _of(PicklingError),
        "An estimator, a scorer or a model cannot be pickled, which workers need. Define its classes and functions at "
        "the top of a module, or use n_jobs=1.",
    ),
    (
        _of(NotReadable),
        "A worker could not read what it was sent, or this process what a worker sent back. Workers need this library, "
        "the modules of estimators and scorers, and the same versions of all of them. They must see the "
        "file of a numpy.memmap under the same path; numpy.array(X) is sent with its content.",
    ),
    (
        _of(TimeoutError),
        "The cluster has no workers. Start some, or wait for them longer: parallel_config('dask', "
        "wait_for_workers_timeout=120).",
    ),
    (
        _of(OSError),
        "The operating system refused a worker, a file or a connection: see its limits on processes and open files. "
        "Use fewer workers (n_jobs), or n_jobs=1.",
    ),
)
