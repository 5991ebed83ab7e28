"""Which block counts: threads do not mix, what they start is not lost, and what is unclear is an
error."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sklearn_dpsearch import PrivacyError, PrivacyLedger
from sklearn_dpsearch.ledger._ledger_context import counted, ledger_here


@pytest.fixture
def two(tmp_path):
    return [PrivacyLedger(tmp_path / name, epsilon=1, delta=0) for name in "ab"]


def in_a_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_block_counts_until_its_end(two):
    assert ledger_here() is None
    with two[0] as ledger:
        assert ledger is ledger_here() is two[0]
        with two[0].label("inner"):
            assert ledger_here() == two[0]
        assert ledger_here() is two[0]
    assert ledger_here() is None


def test_a_block_ends_with_an_error_too(two):
    with pytest.raises(RuntimeError), two[0]:
        raise RuntimeError
    assert ledger_here() is None
    assert in_a_thread(ledger_here) is None


def test_blocks_of_two_ledgers_do_not_nest(two):
    with two[0], pytest.raises(PrivacyError, match="End the outer block first"), two[1]:
        raise AssertionError("was entered")
    assert ledger_here() is None


def test_two_threads_have_a_block_each(two):
    both, found = threading.Barrier(2), {}

    def work(ledger):
        with ledger:
            both.wait(10)
            found[ledger.path] = ledger_here()
            both.wait(10)

    threads = [threading.Thread(target=work, args=(ledger,)) for ledger in two]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {ledger.path: ledger for ledger in two}


def test_a_thread_that_a_library_starts_takes_part_in_the_one_block_that_is_open(two):
    with two[0]:
        assert in_a_thread(ledger_here) is two[0]


def test_where_two_are_open_elsewhere_nobody_knows_and_that_is_an_error(two):
    def inside():
        with two[1]:
            match = "blocks of 2 ledgers are open.*Give the search ledger="
            with pytest.raises(PrivacyError, match=match):
                in_a_thread(ledger_here)
            return ledger_here()

    with two[0]:
        assert in_a_thread(inside) is two[1]
        assert ledger_here() is two[0]


def test_what_somebody_else_counts_has_no_ledger(two):
    with two[0], counted():
        assert ledger_here() is None
    with two[0]:
        assert ledger_here() is two[0]
