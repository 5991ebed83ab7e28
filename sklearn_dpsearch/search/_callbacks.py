"""scikit-learn's callbacks, since its release 1.9: its progress bar, and none that sees records or scores."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from ..privacy import PrivacyError


def _known(search: Any) -> bool:
    """Return whether scikit-learn has callbacks."""
    return find_spec("sklearn.callback") is not None


class PhaseCallbacks:
    """Callbacks of a search: ``ProgressBar`` asks for the beginning and the end of its public phases."""

    verbose: int

    @available_if(_known)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's progress bar, or remove it.

        Public phases are shown as with ``verbose=1``, by a bar of this library. scikit-learn's own bar would take over
        the standard output, while candidates must be silent, and leave the time of each phase behind.

        Parameters
        ----------
        *callbacks : ProgressBar of sklearn.callback
            None of them: the bar is removed.

        Returns
        -------
        self : object

        Raises
        ------
        PrivacyError
            For any other callback: it would see records, scores of candidates or their number.
        """
        from sklearn.callback import ProgressBar

        for callback in callbacks:
            if type(callback) is not ProgressBar:
                raise PrivacyError(
                    f"Found callback {type(callback).__name__}: it would see records, scores of candidates or their "
                    "number, which never leave fit. Only ProgressBar of sklearn.callback is possible; leave others "
                    "out. best_score_ is the score that is released."
                )
        if callbacks:
            self._skl_callbacks = list(callbacks)  # under this name scikit-learn's clone keeps them
        else:
            self.__dict__.pop("_skl_callbacks", None)
        return self

    def _progress_shown(self) -> int:
        """Level of progress: ``verbose``, at least 1 with a progress bar."""
        if not vars(self).get("_skl_callbacks"):
            return self.verbose
        if hasattr(self, "_parent_callback_ctx"):
            raise PrivacyError(
                "Found a ProgressBar on an estimator around this search: it takes over the standard output while "
                "candidates must be silent. Remove it there with set_callbacks(), and set it on the search."
            )
        return max(1, self.verbose)
