"""A search that is killed and started again releases exactly what it would have released, and costs
what one costs."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
import shutil
import threading
from datetime import date
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from sklearn_dpsearch import DPRandomSearchCV, NoModelError, PrivacyLedger, _durable
from sklearn_dpsearch._durable import write_whole
from sklearn_dpsearch.data._partitions import partition_facts
from sklearn_dpsearch.privacy import BudgetExceededError, PrivacyError
from sklearn_dpsearch.search import _checkpoint, _checkpoint_folder
from sklearn_dpsearch.search._base import RELEASED_ATTRIBUTES
from sklearn_dpsearch.search._checkpoint import Checkpoint
from sklearn_dpsearch.search._checkpoint_folder import (
    LOCK,
    README,
    RELEASE,
    RUN_PREFIX,
    STATE,
    FileOfSearch,
)
from sklearn_dpsearch.search._execution.job import Finished
from sklearn_dpsearch.search._planning.plan import SECRET_SEED
from sklearn_dpsearch.search._strategy import BestOfStrategy

from .toys import NoisyCentroids, holds_a_release_alone, search_of, two_blobs

#: Trainings are counted here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("unrehearsed"),
]
POSIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")
FULL = os.environ.get("SKLEARN_DPSEARCH_FULL") == "1"
X, y = two_blobs(120)
SPACE = {"shrink": [0.0, 0.2, 0.4, 0.6]}
SETTINGS = {
    "random": ("random", {"n_iter": 8}),
    "refit": ("random", {"n_iter": 8, "refit": True}),
    "all": ("random", {"n_iter": 4, "release": "all"}),
    "subset": ("subset", {"n_iter": 8}),
    "threshold": ("threshold", {"threshold": 0.999, "n_iter": 30}),
    "walk": ("doubling", {"n_parts": 6, "max_rounds": None}),
    "grid": ("grid", {"n_parts": 6}),
}


def made(name, **more):
    kind, given = SETTINGS[name]
    return search_of(kind, NoisyCentroids(), SPACE, **given, **more)


SEARCHES = {name: partial(made, name) for name in SETTINGS}
EVERY_SEARCH = pytest.mark.parametrize("make", SEARCHES.values(), ids=list(SEARCHES))


class PowerCut(BaseException):
    """The end of a process, as far as a test in the same process can have one."""


class Lights:
    """Goes out after so many finished pieces of work."""

    def __init__(self, monkeypatch, after):
        self.left, put = after, Finished.put

        def counted(done, seed, result):
            put(done, seed, result)
            self.left -= 1
            if self.left < 0:
                raise PowerCut

        monkeypatch.setattr(Finished, "put", counted)


def released(search):
    """All that a fit leaves behind, in a form that can be compared."""
    fitted = vars(search).items()
    kept = {name: value for name, value in fitted if name.endswith("_")}
    kept.pop("privacy_spent_")
    model = kept.pop("best_estimator_", None)
    table = {
        name: np.asarray(value).tolist() for name, value in kept.pop("cv_results_", {}).items()
    }
    scorer = repr(kept.pop("scorer_", None))
    centroids = None if model is None else model.centroids_.tolist()
    return repr(kept), repr(table), scorer, centroids, search.privacy_spent_.epsilon


def cut_off(make, folder, monkeypatch, after=0, data=(X, y)):
    """Begin a fit, and let the lights go out; what a process that died then leaves on the disk."""
    with monkeypatch.context() as patched:
        Lights(patched, after)
        with contextlib.suppress(BaseException):  # what becomes of it on its way is not looked at
            make(checkpoint=folder).fit(*data)
    assert folder.exists()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


# --- the same release -----------------------------------------------------------------------------


@pytest.mark.slow
@EVERY_SEARCH
@pytest.mark.parametrize("after", [0, 2])
def test_a_search_that_was_cut_off_releases_what_it_would_have_released(
    make, after, folder, monkeypatch
):
    seeded = partial(make, random_state=5)
    cut_off(seeded, folder, monkeypatch, after)
    assert sum(path.name.startswith(RUN_PREFIX) for path in folder.iterdir()) == after + 1
    assert released(seeded(checkpoint=folder).fit(X, y)) == released(seeded().fit(X, y))
    assert holds_a_release_alone(folder)


@pytest.mark.slow
# which may stop before it begins
@pytest.mark.parametrize("name", sorted({*SEARCHES} - {"threshold"}))
def test_without_a_seed_it_is_the_same_as_well(name, folder, tmp_path, monkeypatch):
    """From a copy made when it was cut off, without any finished run, comes the same release."""
    make = SEARCHES[name]
    cut_off(make, folder, monkeypatch)
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(f"{RUN_PREFIX}*"))
    first, again = (make(checkpoint=one).fit(X, y) for one in (folder, tmp_path / "copy"))
    assert released(first) == released(again)


def test_finished_runs_are_not_run_again(folder, monkeypatch):
    make = partial(made, "all", random_state=1)
    cut_off(make, folder, monkeypatch, after=2)
    fits = runs_of(monkeypatch)
    make(checkpoint=folder).fit(X, y)
    assert len(fits) == 1  # of four


def test_a_foreign_pickle_is_not_opened(folder, monkeypatch, tmp_path):
    make = partial(made, "random", random_state=5)
    cut_off(make, folder, monkeypatch, after=1)

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "evil"),)

    for path in folder.glob(f"{RUN_PREFIX}*"):
        # all but the name of the search is known
        write_whole(path, b"\x00" * 32 + pickle.dumps(Evil()))
    make(checkpoint=folder).fit(X, y)
    assert not (tmp_path / "evil").exists()


def lengths(path, rng):
    """Where a file may be cut: at its ends, and in the middle."""
    size = path.stat().st_size
    return (
        range(size) if FULL else sorted({0, 1, size - 1, *(rng.randrange(size) for _ in range(3))})
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "subset", "grid", "threshold"])
def test_after_a_power_cut_it_goes_on_to_the_same_or_is_refused(name, tmp_path, monkeypatch):
    """Every file of the folder cut short, one at a time and all of the finished runs together."""
    make, rng = partial(made, name, random_state=5), random.Random(0)
    expected, whole, folder = released(make().fit(X, y)), tmp_path / "whole", tmp_path / "cut"
    cut_off(make, whole, monkeypatch, after=2)
    seen = set()
    for path in sorted(whole.iterdir()):
        for length in lengths(path, rng) if path.stat().st_size else [0]:
            shutil.copytree(whole, folder)
            os.truncate(folder / path.name, length)
            if path.name == STATE:
                match = r"(?s)damaged.*start anew.*first attempt is then spent"
                with pytest.raises(PrivacyError, match=match):
                    make(checkpoint=folder).fit(X, y)
                shutil.rmtree(folder)
            else:
                assert released(make(checkpoint=folder).fit(X, y)) == expected
                assert holds_a_release_alone(folder)
                shutil.rmtree(folder)
            seen.add(path.name)
    assert len(seen) >= 5  # the secret, what is told, and three runs


def test_runs_without_the_secret_from_which_they_came_are_refused(folder, monkeypatch):
    """Its noise was drawn: starting anew in silence would spend the same again."""
    cut_off(partial(made, "random", random_state=5), folder, monkeypatch, after=1)
    (folder / STATE).unlink()
    match = r"(?s)without its file 'search.checkpoint'.*first attempt is then spent"
    with pytest.raises(PrivacyError, match=match):
        made("random", checkpoint=folder).fit(X, y)
    assert folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("for_good", [True, False])
def test_a_full_disk_stops_it_before_it_spends_or_changes_nothing(for_good, tmp_path, monkeypatch):
    make = partial(made, "all", random_state=5)
    expected, write = released(make().fit(X, y)), _durable.write_through
    for number in range(1, 30):
        folder, calls = tmp_path / str(number), []

        def full(path, *parts, calls=calls, number=number, **mode):
            calls.append(path)
            if len(calls) == number or (for_good and len(calls) > number):
                raise OSError(28, "No space left on device")
            return write(path, *parts, **mode)

        for module in (_durable, _checkpoint_folder):
            monkeypatch.setattr(module, "write_through", full)
        search = make(checkpoint=folder)
        if number <= 2:  # what is told, and the secret
            match = "no way to write.*No space left.*room.*are needed.*nothing is spent"
            with pytest.raises(PrivacyError, match=match):
                search.fit(X, y)
            assert not hasattr(search, "privacy_spent_")
        else:
            assert released(search.fit(X, y)) == expected
        assert not folder.exists() or (number > 2 and holds_a_release_alone(folder))
        if len(calls) < number:
            break
    assert 5 < number < 29


@POSIX
@pytest.mark.slow
def test_a_process_that_dies_at_any_write_leaves_a_folder_to_go_on_from(tmp_path):
    """Every call that puts something on the disk is the last one of a process, in turn."""
    make = partial(made, "all", random_state=7)
    expected, fork = released(make().fit(X, y)), multiprocessing.get_context("fork")
    for number in range(1, 40):
        folder = tmp_path / str(number)
        process = fork.Process(target=_die_at, args=(make, folder, number))
        process.start()
        process.join()
        assert released(make(checkpoint=folder).fit(X, y)) == expected
        assert holds_a_release_alone(folder)
        if process.exitcode == 0:  # it came to the end before so many calls
            break
    assert number > 10


def _die_at(make, folder, number):
    left, calls = [number], {name: getattr(os, name) for name in ("fsync", "replace")}

    def counted(name, *given):
        left[0] -= 1
        if left[0] == 0:
            os._exit(1)
        return calls[name](*given)

    for name in calls:
        setattr(os, name, lambda *given, name=name: counted(name, *given))
    make(checkpoint=folder).fit(X, y)


# --- after the release ----------------------------------------------------------------------------


def runs_of(monkeypatch):
    """How often a candidate was fitted."""
    fits, fit = [], NoisyCentroids.fit
    monkeypatch.setattr(NoisyCentroids, "fit", lambda *given: (fits.append(1), fit(*given))[1])
    return fits


@EVERY_SEARCH
def test_the_same_fit_once_more_gets_its_release_back_and_spends_nothing(make, folder, monkeypatch):
    """A process may die before its user has saved the model, and its script is started again,
    perhaps much later."""
    first = make(checkpoint=folder).fit(X, y)
    fits, here = runs_of(monkeypatch), _checkpoint.versions()
    monkeypatch.setattr(_checkpoint, "versions", lambda: {**here, "numpy": "0.0"})
    again = make(checkpoint=folder, n_jobs=1, verbose=0, rehearse=True).fit(
        np.asfortranarray(X), y.copy()
    )
    assert not fits
    assert released(again) == released(first)
    assert repr(again.privacy_spent_) == repr(first.privacy_spent_)
    assert holds_a_release_alone(folder)


def moved(values):
    changed = values.copy()
    changed[3] = changed[3] * 0.5 + 0.25
    return changed


#: What may differ from a search that releases all runs: its kind, its parameters, its data; and
#: what is told of it.
OTHERS = {
    "records": ("all", {}, (moved(X), y), "other X.*must never meet other records"),
    "targets": ("all", {}, (X, 1 - y), "other y"),
    "order": ("all", {}, (X[::-1], y), "other X"),
    "space": (
        "all", {"param_distributions": {"shrink": [0.0, 0.9, 0.91, 0.92]}}, (X, y),
        "other candidates",
    ),
    "estimator": (
        "all", {"estimator": NoisyCentroids(epsilon=2.0)}, (X, y), "other candidates, estimator",
    ),
    "scoring": ("all", {"scoring": "accuracy"}, (X, y), "scoring='accuracy'.*scoring=None"),
    "seed": ("all", {"random_state": 6}, (X, y), "random_state=6.*random_state=5"),
    "number of runs": ("all", {"n_iter": 5}, (X, y), "other candidates"),
    "kind": ("subset", {}, (X, y), "other candidates"),
}  # fmt: skip
EVERY_OTHER = pytest.mark.parametrize(
    ("kind", "changed", "data", "message"), OTHERS.values(), ids=list(OTHERS)
)


@pytest.mark.slow
@EVERY_OTHER
def test_another_fit_takes_a_releases_place(kind, changed, data, message, folder, monkeypatch):
    made("all", checkpoint=folder, random_state=5).fit(X, y)
    before, fits = (folder / RELEASE).read_bytes(), runs_of(monkeypatch)
    made(kind, checkpoint=folder, random_state=5).set_params(**changed).fit(*data)
    assert fits
    assert holds_a_release_alone(folder)
    assert (folder / RELEASE).read_bytes() != before


def test_what_is_refused_leaves_the_release_there(folder, tmp_path):
    first = made("random", checkpoint=folder).fit(X, y)
    with pytest.raises(ValueError, match="y to be passed"):
        made("random", checkpoint=folder).fit(X)
    assert released(made("random", checkpoint=folder).fit(X, y)) == released(first)


@pytest.mark.parametrize("dies", [False, True])
def test_what_a_ledger_refuses_leaves_an_earlier_release_there(dies, folder, tmp_path, monkeypatch):
    """Also if the process dies when the new search is written down and the ledger has not
    answered."""
    first = made("random", checkpoint=folder).fit(X, y)
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=0.1, delta=0.0)
    other = made("all", checkpoint=folder, ledger=ledger)
    if dies:
        with monkeypatch.context() as patched:
            patched.setattr(PrivacyLedger, "_spend_fit", power_cut)
            with pytest.raises(PowerCut):
                other.fit(X, y)
        # the ledger may have entered the other search
        with pytest.raises(PrivacyError, match="began"):
            made("random", checkpoint=folder).fit(X, y)
    with pytest.raises(BudgetExceededError):
        other.fit(X, y)
    assert holds_a_release_alone(folder)
    assert released(made("random", checkpoint=folder).fit(X, y)) == released(first)


def power_cut(*given, **named):
    raise PowerCut


@pytest.mark.slow
def test_a_search_that_is_paid_for_after_a_power_cut_replaces_a_release(
    folder, tmp_path, monkeypatch
):
    made("random", checkpoint=folder).fit(X, y)
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=100.0, delta=0.0)
    other, seen, run = made("all", checkpoint=folder, ledger=ledger), [], BestOfStrategy.run
    with monkeypatch.context() as patched:
        patched.setattr(PrivacyLedger, "_spend_fit", power_cut)
        with pytest.raises(PowerCut):
            other.fit(X, y)
    monkeypatch.setattr(
        BestOfStrategy,
        "run",
        lambda *given: (seen.append((folder / RELEASE).exists()), run(*given))[1],
    )
    other.fit(X, y)
    assert seen == [False]
    assert len(ledger.entries()) == 1
    assert holds_a_release_alone(folder)


@pytest.mark.slow
@EVERY_SEARCH
@pytest.mark.parametrize("number", range(3))
def test_an_interrupt_while_a_release_is_saved_shows_nothing(make, number, folder, monkeypatch):
    """Else the same noise could meet other work, and two results would tell what it hid."""
    search, keep, calls = make(checkpoint=folder), Checkpoint.keep, []

    def interrupted(write):
        def called(*given):
            calls.append(given)
            if len(calls) == number + 1:
                raise KeyboardInterrupt
            return write(*given)

        return called

    def kept(one, release, code):
        with monkeypatch.context() as patched:
            cases = ((FileOfSearch, "write"), (Checkpoint, "_write"), (Checkpoint, "_forget"))
            for owner, name in cases:
                patched.setattr(owner, name, interrupted(getattr(owner, name)))
            keep(one, release, code)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "keep", kept)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, y)
    assert not [name for name in RELEASED_ATTRIBUTES if hasattr(search, name)]
    assert search.privacy_spent_
    again = make(checkpoint=folder).fit(X, y)
    assert holds_a_release_alone(folder)
    assert again.scorer_ is not None


def test_a_release_that_cannot_be_saved_is_shown_when_its_secrets_are_gone(folder, monkeypatch):
    keep, left = Checkpoint.keep, []

    def kept(one, release, code):
        keep(one, {"scorer_": threading.Lock()}, code)
        left.extend(set(os.listdir(folder)) - {README, LOCK})

    monkeypatch.setattr(Checkpoint, "keep", kept)
    assert made("random", checkpoint=folder).fit(X, y).best_estimator_
    assert not left
    assert not folder.exists()


@pytest.mark.parametrize("damage", [None, b"damaged"])
def test_a_release_that_is_damaged_is_not_spent_again_in_silence(damage, folder):
    made("random", checkpoint=folder).fit(X, y)
    path = folder / RELEASE
    path.unlink() if damage is None else path.write_bytes(damage)
    match = r"(?s)that has ended, without its file 'release'.*first attempt is then spent"
    with pytest.raises(PrivacyError, match=match):
        made("random", checkpoint=folder).fit(X, y)


@pytest.mark.slow
def test_a_release_that_other_versions_cannot_read_is_not_spent_again_silently(folder, monkeypatch):
    made("random", checkpoint=folder).fit(X, y)
    monkeypatch.setattr(_checkpoint, "unpickled", lambda *given: [][0])
    with pytest.raises(PrivacyError, match="cannot be read here .IndexError.*versions"):
        made("random", checkpoint=folder).fit(X, y)
    assert holds_a_release_alone(folder)


def test_a_ledger_that_does_not_know_a_release_enters_it(folder, tmp_path):
    made("random", checkpoint=folder).fit(X, y)
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=100.0, delta=0.0)
    for _ in range(2):
        made("random", checkpoint=folder, ledger=ledger).fit(X, y)
        assert len(ledger.entries()) == 1


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.slow
@EVERY_OTHER
def test_another_search_is_refused_and_the_first_can_still_go_on(
    kind, changed, data, message, folder, monkeypatch
):
    make = partial(made, "all", random_state=5)
    cut_off(make, folder, monkeypatch)
    with pytest.raises(PrivacyError, match=f"(?s){message}.*start anew"):
        made(kind, checkpoint=folder, random_state=5).set_params(**changed).fit(*data)
    assert released(make(checkpoint=folder).fit(X, y)) == released(make().fit(X, y))


@pytest.mark.parametrize("library", ["numpy", "opacus", "interpret-core"])
def test_another_version_is_refused(library, folder, monkeypatch):
    cut_off(SEARCHES["random"], folder, monkeypatch)
    here = _checkpoint.version_of
    monkeypatch.setattr(
        _checkpoint, "version_of", lambda name: "0.0" if name == library else here(name)
    )
    match = rf"(?s)Found {library}='0\.0', and the search in .* began with.*Go on where"
    with pytest.raises(PrivacyError, match=match):
        made("random", checkpoint=folder).fit(X, y)


def named(first):
    return pd.DataFrame(X, columns=["a", "b"], index=np.arange(len(X)) + first)


BESIDE = {
    "names of rows": (named(0), named(1)),
    "values of a frame": (named(0), named(0).assign(b=moved(X[:, 1]))),
    "arrays by name": ({"a": X, "b": X}, {"a": X, "b": moved(X)}),
    "columns of one name": (
        named(0).set_axis(["a", "a"], axis=1),
        named(0)[["b", "a"]].set_axis(["a", "a"], axis=1),
    ),
}


def digest_of(records):
    return _checkpoint.digest("X", _checkpoint.plain_records("X", records))


@pytest.mark.parametrize("what", BESIDE)
def test_what_lies_beside_the_values_of_records_is_compared_too(what):
    mine, other = BESIDE[what]
    assert digest_of(mine) == digest_of(mine.copy()) != digest_of(other)


def test_a_frame_is_the_same_however_its_columns_lie_in_memory():
    cases = (np.ascontiguousarray, np.asfortranarray)
    one, other = (digest_of(pd.DataFrame(lay(X), columns=["a", "b"])) for lay in cases)
    assert one == other


def test_entries_count_by_their_values_whichever_objects_they_are():
    day, number, name = pd.Timestamp(0), np.int64(3), frozenset("ab")
    entries = [date(2020, 1, 1), Decimal("1.5"), (1, "a"), [{"a": name}], number, day, 10**5000]
    others = [date(2020, 1, 2), Decimal("1.50"), (1, "b"), [{"a": 1}], np.int32(3), day.date(), 1]
    again = [pickle.loads(pickle.dumps(entry)) for entry in entries]
    for digest in (digest_of, partition_facts, lambda frame: digest_of(frame["a"].to_numpy())):

        def of(values, digest=digest):
            return digest(pd.DataFrame({"a": pd.Series(values, dtype=object)}))

        assert of([*entries, *entries]) == of([*entries, *again])
        for place, other in enumerate(others):
            assert of([*entries[:place], other, *entries[place + 1 :]]) != of(again)


def test_a_sparse_matrix_is_the_same_after_it_was_used():
    used = csr_matrix(X)
    before = digest_of(used.copy())
    assert used.has_sorted_indices
    assert before == digest_of(used) == digest_of(used[:, ::-1][:, ::-1])
    wider = csr_matrix((used.data, used.indices, used.indptr), (len(X), 3))
    assert before not in map(digest_of, (csr_matrix(moved(X)), wider))


def test_records_of_which_only_a_description_could_be_compared_are_refused():
    data = pytest.importorskip("torch.utils.data")

    class Stored(data.Dataset):
        """Records that are read one by one."""

    match = r"(?s)Stored together with checkpoint=.*checkpoint=None"
    with pytest.raises(PrivacyError, match=match):
        _checkpoint.plain_records("X", Stored())


def test_rounds_of_the_callers_own_have_no_checkpoint(folder):
    with pytest.raises(ValueError, match=r"rounds\(\) with checkpoint="):
        made("walk", checkpoint=folder).rounds(X, y, [])


def test_a_checkpoint_inside_of_a_search_is_refused(folder):
    inner = made("random", checkpoint=folder)
    with pytest.raises(PrivacyError, match="Set checkpoint=None"):
        DPRandomSearchCV(inner, {"n_iter": [2, 4]}).fit(X, y)


# --- secrets --------------------------------------------------------------------------------------


def test_a_search_in_which_all_candidates_fail_has_ended_too(folder):
    with pytest.raises(NoModelError):
        made("random", checkpoint=folder).fit(X, np.zeros(len(y), dtype=int))
    assert not folder.exists()


def test_the_statement_says_what_the_noise_rests_on(folder):
    assert SECRET_SEED in made("random", checkpoint=folder).privacy_cost().assumptions
    assert SECRET_SEED not in made("random").privacy_cost().assumptions


def test_nothing_of_the_secret_stays_on_the_fitted_search(folder, monkeypatch):
    written, write = [], Checkpoint._write
    monkeypatch.setattr(
        Checkpoint, "_write", lambda one, header: (written.append(header), write(one, header))
    )
    search = made("random", checkpoint=folder).fit(X, y)
    header, pickled = written[0], pickle.dumps(search)
    assert header["name"].encode() not in pickled
    assert header["entropy"].to_bytes(32, "little") not in pickled


# --- ledgers --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_search_that_goes_on_is_entered_once(folder, tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "data.ledger", epsilon=100.0, delta=0.0)
    make = partial(made, "all", ledger=ledger)
    for _ in range(3):  # of four runs
        cut_off(make, folder, monkeypatch)
    for _ in range(3):
        make(checkpoint=folder).fit(X, y)
        assert len(ledger.entries()) == 1
    make(checkpoint=folder, random_state=0).fit(X, y)
    assert len(ledger.entries()) == 2
