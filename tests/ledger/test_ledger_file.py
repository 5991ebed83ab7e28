"""The file of a ledger: nothing that was used is ever missing, and damage is noticed."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from sklearn_dpsearch import BudgetExceededError, PrivacyError, PrivacyLedger
from sklearn_dpsearch.ledger import _ledger_file as ledger_file
from sklearn_dpsearch.privacy import PureDP

from .dying import DEATHS, POSIX, died, use, uses

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
ONE = PureDP(epsilon=1.0)


@pytest.fixture
def ledger(tmp_path):
    """One with three entries."""
    made = PrivacyLedger(tmp_path / "x.ledger", epsilon=10, delta=0)
    for label in "abc":
        made.spend(ONE, label=label)
    return made


def labels(path):
    return "".join(entry.label for entry in PrivacyLedger(path).entries())


# --- dying ----------------------------------------------------------------------------------------


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(("death", "calls"), [("before a call", 15), ("while it writes", 2)])
def test_a_process_that_dies_at_any_call_has_entered_all_that_it_used(death, calls, tmp_path):
    for number in range(1, 100):
        path, marks = tmp_path / f"{number}.ledger", tmp_path / f"{number}.marks"

        def work(path=path, marks=marks):
            ledger = PrivacyLedger(path, epsilon=10, delta=0)
            for _ in range(2):
                ledger.spend(ONE)
                use(marks)

        if not died(work, number, *DEATHS[death]):
            break
        # whatever was left behind: it can be gone on with
        again = PrivacyLedger(path, epsilon=10, delta=0)
        before = len(again.entries())
        assert uses(marks) <= before <= uses(marks) + 1
        again.spend(ONE, label="again")
        assert len(again.entries()) == before + 1
    assert number > calls  # so many were cut off


def test_what_is_used_is_on_the_disk_before(tmp_path, monkeypatch):
    """Of the file, and of its name in the folder: what was not synced is lost in a power cut."""
    disk, synced = {}, set()

    def fsync(descriptor, real=os.fsync):
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.add(name)
        disk[os.fstat(descriptor).st_ino] = Path(name).read_bytes() if os.path.isfile(name) else b""
        real(descriptor)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs to know what a descriptor is of")
    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "x.ledger"
    ledger = PrivacyLedger(path, epsilon=10, delta=0)
    for number in (1, 2):
        synced.clear()
        ledger.spend(ONE)
        assert len(ledger_file.parse(disk[path.stat().st_ino], path).bodies) == number
        assert str(tmp_path) in synced


# --- torn and damaged -----------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [1, 40, -2])
def test_a_last_line_that_was_never_finished_is_dropped_and_the_next_takes_its_place(ledger, kept):
    path = Path(ledger.path)
    whole = path.read_bytes()
    ledger.spend(ONE, label="d")
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:kept])
    assert labels(path) == "abc"
    PrivacyLedger(path).spend(ONE, label="e")
    assert labels(path) == "abce"
    assert path.read_bytes()[: len(whole)] == whole


def test_a_last_line_that_lacks_its_end_alone_counts(ledger):
    path = Path(ledger.path)
    path.write_bytes(path.read_bytes()[:-1])  # as some editors save it
    assert labels(path) == "abc"
    ledger.spend(ONE, label="d")
    assert labels(path) == "abcd"


#: What became of the lines, and the number of the one that the error names.
DAMAGES = {
    "changed": (lambda lines: [*lines[:2], lines[2].replace(b"1.0", b"0.1"), *lines[3:]], 3),
    "without one": (lambda lines: [*lines[:2], *lines[3:]], 3),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
    "torn": (lambda lines: [*lines[:2], lines[2][:30], *lines[3:]], 3),
    "twice": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4),
    "changed at the end": (lambda lines: [*lines[:3], lines[3].replace(b"1.0", b"0.1")], 4),
    "another budget": (lambda lines: [lines[0].replace(b"10.0", b"90.0"), *lines[1:]], 1),
    "no header": (lambda lines: lines[1:], 1),
    "empty": (lambda lines: [], 1),
    "something else": (lambda lines: [b"age,income\n", b"39,50\n"], 1),
}


@pytest.mark.parametrize(("damage", "line"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_line_is_an_error_that_says_which_and_what_to_do(ledger, damage, line):
    path = Path(ledger.path)
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    damaged = path.read_bytes()
    for attempt in (ledger.spent, lambda: ledger.spend(ONE), lambda: PrivacyLedger(path)):
        match = f"line {line} is not as it was written.*Put back a copy"
        with pytest.raises(PrivacyError, match=match):
            attempt()
    assert path.read_bytes() == damaged


def test_every_line_is_json(ledger):
    header, *entries = map(json.loads, Path(ledger.path).read_text().splitlines())
    expected = (1, 10.0, 0.0, None)
    assert (header["ledger"], header["epsilon"], header["delta"], header["unit"]) == expected
    assert {entry["unit"] for entry in entries} == {"record"}
    assert [entry["label"] for entry in entries] == ["a", "b", "c"]


def test_a_ledger_of_a_later_version_is_not_guessed_at(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_file, "VERSION", 2)
    PrivacyLedger(tmp_path / "x.ledger", epsilon=1, delta=0)
    monkeypatch.undo()
    with pytest.raises(PrivacyError, match="version 2.*version 1 is needed.*later one"):
        PrivacyLedger(tmp_path / "x.ledger")


@pytest.mark.parametrize("kept", [0, 2, 3])
def test_an_open_ledger_notices_that_entries_it_has_seen_were_cut_off(ledger, kept):
    path, other = Path(ledger.path), PrivacyLedger(ledger.path)
    ledger.spend(ONE, label="d")
    labeled, sent = ledger.label("e"), pickle.loads(pickle.dumps(ledger))
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[: 1 + kept]))
    for seen in (ledger, labeled, sent):
        for attempt in (seen.spent, seen.entries, lambda seen=seen: seen.spend(ONE)):
            match = rf"cut off \({kept} are there\).*with 4 entries, is needed.*Put it back"
            with pytest.raises(PrivacyError, match=match):
                attempt()
    if kept == 3:  # of which one ledger has seen no more
        assert len(other.entries()) == 3
    PrivacyLedger(path).spend(ONE, label="another")
    with pytest.raises(PrivacyError, match="with 4 entries"):
        ledger.spent()
    path.write_bytes(whole)
    assert len(ledger.entries()) == 4


# --- what the system refuses ----------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write", "fsync", "ftruncate"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_full_or_broken_disk_leaves_the_file_as_it_was(ledger, monkeypatch, call, code):
    path, real = Path(ledger.path), getattr(os, call)
    before = path.read_bytes()

    def fail(descriptor, *args):
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            return real(descriptor, *args)
        if call == "write" and len(args[0]) > 20:
            return real(descriptor, bytes(args[0])[:20])
        monkeypatch.setattr(os, call, real)  # once
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    match = f"no way to write.*{os.strerror(code)}.*No record was used"
    with pytest.raises(PrivacyError, match=match):
        ledger.spend(ONE, label="d")
    assert path.read_bytes() == before
    ledger.spend(ONE, label="e")
    assert labels(path) == "abce"


def test_a_disk_that_stays_broken_may_overstate_and_never_understates(ledger, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(ledger_file, "sync_folder", lambda folder: None)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(PrivacyError, match="No record was used"):
        ledger.spend(ONE, label="d")
    monkeypatch.undo()
    assert labels(ledger.path) in ("abc", "abcd")


def test_a_folder_that_is_not_there_and_a_file_in_its_place_are_said(tmp_path):
    match = "Found no way to lock.*a folder that exists and may be written into"
    with pytest.raises(PrivacyError, match=match):
        PrivacyLedger(tmp_path / "no" / "x.ledger", epsilon=1, delta=0)


def test_a_ledger_that_was_taken_away_is_not_begun_again(ledger):
    os.remove(ledger.path)
    match = "no way to read.*under the name with which it was begun"
    with pytest.raises(PrivacyError, match=match):
        ledger.spend(ONE)
    assert not os.path.exists(ledger.path)


def test_another_ledger_in_its_place_is_not_taken_for_it(ledger):
    os.remove(ledger.path)
    other = PrivacyLedger(ledger.path, epsilon=10, delta=0)
    match = "Found another ledger in the place of.*Put it back"
    with pytest.raises(PrivacyError, match=match):
        ledger.spend(ONE)
    assert other.entries() == ()


def test_a_file_under_two_names_is_refused_because_each_would_have_a_lock(ledger, tmp_path):
    os.link(ledger.path, tmp_path / "y.ledger")
    with pytest.raises(PrivacyError, match="several names"):
        PrivacyLedger(tmp_path / "y.ledger").spend(ONE)


def test_a_link_leads_to_the_same_ledger(ledger, tmp_path):
    os.symlink(ledger.path, tmp_path / "link")
    assert PrivacyLedger(tmp_path / "link") == ledger


# --- several at once ------------------------------------------------------------------------------


def _in_processes(target, *args):
    """The same in two processes at once."""
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=target, args=args) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [one.exitcode for one in both] == [0, 0]


def _enter(path, times):
    ledger = PrivacyLedger(path, epsilon=1000, delta=0)
    for _ in range(times):
        ledger.spend(ONE)


def _enter_what_fits(path, times):
    ledger = PrivacyLedger(path)
    for _ in range(times):
        try:
            ledger.spend(ONE)
        except BudgetExceededError:
            continue


@POSIX
@pytest.mark.parametrize("times", [15, pytest.param(50, marks=pytest.mark.slow)])
def test_two_processes_that_enter_at_once_lose_nothing(times, tmp_path):
    _in_processes(_enter, tmp_path / "x.ledger", times)  # which begin it at once, too
    assert len(PrivacyLedger(tmp_path / "x.ledger").entries()) == 2 * times


@POSIX
def test_the_last_of_the_budget_goes_to_one_process_alone(tmp_path):
    ledger = PrivacyLedger(tmp_path / "x.ledger", epsilon=20, delta=0)
    _in_processes(_enter_what_fits, ledger.path, 20)
    assert len(ledger.entries()) == 20
    assert ledger.spent().epsilon == 20.0


def test_what_others_enter_while_a_ledger_waits_for_the_lock_counts(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "x.ledger", epsilon=1, delta=0)
    other, locked = PrivacyLedger(ledger.path), ledger_file.locked

    @contextmanager
    def waited(path):
        monkeypatch.setattr(ledger_file, "locked", locked)
        other.spend(ONE)
        with locked(path):
            yield

    monkeypatch.setattr(ledger_file, "locked", waited)
    with pytest.raises(BudgetExceededError, match="what was spent before"):
        ledger.spend(ONE)
    assert len(ledger.entries()) == 1


def test_a_lock_that_is_never_given_back_is_said(ledger, monkeypatch):
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    with (
        ledger_file.locked(Path(ledger.path)),
        pytest.raises(PrivacyError, match="locked by another process"),
    ):
        ledger.spend(ONE)


def test_no_time_of_day_is_in_the_file(ledger):
    """The times of two fits in a row would tell how long the first one took, and with it about
    K."""
    assert not re.search(r"\d\d:\d\d", Path(ledger.path).read_text())
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", entry.day) for entry in ledger.entries())
