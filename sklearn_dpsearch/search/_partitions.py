"""Tables in partitions of Dask.

Candidates get the rows that are drawn for them, the last training the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from .._process import in_fixed_words
from ..adapters._adapter import is_ours
from ..data._columns import is_frame
from ..data._partitions import chosen_rows, column_named, header_of, partition_facts, parts_of
from ..data._records import Records, read_features, read_targets
from ..privacy import PrivacyError
from ..scoring._validation import Indices
from ._execution.clusters import connection_of
from ._execution.job import Split
from ._pickling import pickled, unpickled
from ._planning.checks import first_look
from ._records import Scorer, declared_of
from ._strategy import Strategy

#: Forms of columns that are joined, by NumPy's letter for their types; all others are objects.
FORMS: dict[str, Any] = {**dict.fromkeys("biuf", np.float64), "M": "datetime64[us]"}
TRUSTED_WORKERS = (
    "Records are in partitions on workers of Dask, which send rows of the subset and of the "
    "validation to the private process: workers, scheduler and connections are trusted as the "
    "caller is."
)
CHANGED_PARTITION = (
    "Found a partition with other rows, or another order of rows, than when its records were "
    "counted, so that the rest would not be the records outside of the subset. Each computation "
    "has to give the same: X = X.persist() before fit."
)


class TableChangedError(PrivacyError):
    """Error for a partition that has changed since its records were counted."""


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """Table in partitions, which stay on their workers but for rows that are asked for.

    Parameters
    ----------
    parts : bytes
        Delayed frames, pickled: they may hold results that only a client of the cluster can
        unpickle.
    sizes : tuple of int
        Number of records of each partition.
    digests : tuple of bytes
        Digest of the rows of each partition, in order.
    target : str
        Name of the column of labels or numbers to be predicted.
    models : sequence of estimators
        One candidate of each family.
    connect : callable
        Makes a client of the cluster, for a process of its own.
    """

    parts: bytes = field(repr=False)
    sizes: tuple[int, ...]
    digests: tuple[bytes, ...] = field(repr=False)
    target: str
    models: Sequence[Any]
    connect: Callable[[], Any]

    def __len__(self) -> int:
        return sum(self.sizes)

    def gathered(self, split: Split) -> tuple[Any, Any, Split]:
        """Gather rows that train and validate candidates: records, targets and their split."""
        wanted = np.unique(np.concatenate([records for fold in split.folds for records in fold]))
        place: Any = partial(np.searchsorted, wanted)
        folds = [(place(train), place(test)) for train, test in split.folds]
        final = split.final and replace(split.final, table=self)
        return *self._rows(wanted), replace(split, folds=folds, final=final)

    def fit(self, model: Any, records: Indices) -> None:
        """Train a model on the records with these numbers, where they are."""
        with self.connect():
            chosen = np.zeros(len(self), np.bool_)
            chosen[records] = True
            model.fit(self._delayed(np.split(chosen, np.cumsum(self.sizes)[:-1])), self.target)

    def _rows(self, records: Indices) -> tuple[Any, Any]:
        """Rows with these numbers, in ascending order.

        Those of each partition pass the door by themselves.
        """
        import pandas as pd

        starts = np.cumsum((0, *self.sizes))
        numbers = np.split(records, np.searchsorted(records, starts[1:-1]))
        with self.connect() as client:
            places = [np.asarray(part - start, np.intp) for part, start in zip(numbers, starts)]
            frames = _computed(client, self._delayed(places))
        if not all(map(is_frame, frames)):
            raise TableChangedError(CHANGED_PARTITION)
        declared = declared_of(self.models)
        parts = [_in_one_form(read_features(frame, declared), declared.exact) for frame in frames]
        y = [read_targets(column_named(frame, self.target), declared) for frame in frames]
        targets = [part.astype(object) if part.dtype.kind in "iu" else part for part in y]
        return pd.concat(parts, ignore_index=True), np.concatenate(targets)

    def _delayed(self, chosen: Sequence[np.ndarray]) -> list[Any]:
        """Partitions with their chosen rows alone, later."""
        from dask import delayed

        parts = zip(unpickled(self.parts), self.digests, chosen, strict=True)
        return [delayed(chosen_rows)(part, digest, rows) for part, digest, rows in parts]


def _in_one_form(frame: Any, exact: Collection[str]) -> Any:
    """Columns of a partition in the forms that they have in all.

    No entry decides how those of others are joined.
    """
    import pandas as pd

    # pandas would infer text from objects, or fail
    def form(name: str, values: np.ndarray) -> Any:
        dtype = object if name in exact else FORMS.get(values.dtype.kind, object)
        return pd.Series(values, dtype=dtype)

    return pd.DataFrame({name: form(name, np.asarray(column)) for name, column in frame.items()})


def look_at_partitions(
    strategy: Strategy, scorer: Scorer, X: Any, y: Any, params: Mapping[str, Any], *, public: bool
) -> Records:
    """Refuse partitions with which a search cannot succeed, and count their records.

    Workers count and digest them; no row leaves its worker.

    Raises
    ------
    PrivacyError, TypeError, ValueError
        For searches, estimators and parameters that need all records in one place, and for other
        containers.
    """
    from dask import delayed

    search, name = strategy.search, type(strategy.search).__name__
    strategy.check_partitions(public)
    of_library = all(is_ours(type(model)) for model in strategy.kinds)
    takes_them = all(getattr(model, "takes_partitions", False) is True for model in strategy.kinds)
    if search.guarantee is not None or not (of_library and takes_them):
        kinds = " or ".join(dict.fromkeys(type(model).__name__ for model in strategy.kinds))
        raise PrivacyError(
            f"Found partitions of Dask, {kinds} and guarantee={search.guarantee!r}; only boosting "
            "of this library, not inside of a pipeline and without guarantee=, trains on them. "
            "Give that, or records in one place: X.compute(). Nothing was spent."
        )
    if params:
        raise PrivacyError(
            f"Found {', '.join(sorted(params))} in a search over partitions of Dask, which takes "
            "X, y and public data alone. Leave it out, or give records in one place: X.compute(). "
            "Nothing was spent."
        )
    if search.checkpoint is not None:
        raise PrivacyError(
            "Found checkpoint= and partitions of Dask, of which a search that goes on could not "
            "tell whether they are the same. Leave checkpoint=None. Nothing was spent."
        )
    header, targets, target = header_of(X, y, name)
    for model in strategy.kinds:
        model.check_target_of_partitions(target)
    client, parts = _client(), parts_of(X)
    connect = connection_of(client)
    records = first_look(search, strategy.kinds, scorer, header, targets, {})
    tasks = [delayed(partition_facts)(part) for part in parts]
    facts = in_fixed_words(name, lambda: _computed(client, tasks))
    sizes, digests = zip(*facts)
    table = PartitionedTable(pickled(parts), sizes, digests, target, strategy.kinds, connect)
    return replace(records, X=table, y=None, n=len(table))


def _computed(client: Any, tasks: Sequence[Any]) -> list[Any]:
    """Results of delayed tasks, of which the cluster keeps nothing, also after an error."""
    futures = client.compute(tasks)
    try:
        results: list[Any] = client.gather(futures)
        return results
    finally:
        for future in futures:
            future.release()


def _client() -> Any:
    """The user's client of Dask."""
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        raise PrivacyError(
            "Found partitions of Dask without a client; private work is done in a process of its "
            "own, which can reach a cluster alone. Write Client(n_workers=2), or Client(address), "
            "before fit."
        ) from None
