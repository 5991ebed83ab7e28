"""Searches in processes that a service starts: forked and spawned ones, also while it fits one
itself."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from ..search import forked

#: Three children are forked in each.
ROUNDS = 8 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 2
pytestmark = [
    pytest.mark.slow,
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
    pytest.mark.skipif(
        not hasattr(os, "fork") or not Path("/proc/self/fd").exists(), reason="forks, on Linux"
    ),
]


def in_children(method, names):
    """What each child tells, all of them at once; none may hang."""
    context = multiprocessing.get_context(method)
    queues = [context.Queue() for _ in names]
    pairs = zip(names, queues)
    children = [context.Process(target=forked.report, args=(name, queue)) for name, queue in pairs]
    for child in children:
        child.start()
    try:
        told = [queue.get(timeout=60) for queue in queues]
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * len(names)
    finally:
        for child in children:
            child.kill()
            child.join()
    return told


@pytest.mark.parametrize("name", forked.SEARCHES)
def test_forked_children_of_a_process_that_has_fitted_one_draw_noise_of_their_own(name):
    own = forked.numbers(name)
    told = [numbers for numbers, *_ in in_children("fork", [name] * 3)]
    assert len({repr(numbers) for numbers in (own, forked.numbers(name), *told)}) == 5


def test_children_that_are_forked_while_threads_fit_neither_hang_nor_share_noise():
    """Whatever another thread holds at that moment: locks, muted streams, watched interrupts."""
    over, found = threading.Event(), []

    def serve():
        while not over.is_set():
            found.append(forked.numbers("random"))

    threads = [threading.Thread(target=serve) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        told = [
            one for _ in range(ROUNDS) for one in in_children("fork", ["random", "subset", "grid"])
        ]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    everything = [numbers for numbers, *_ in told] + found
    assert len({repr(numbers) for numbers in everything}) == len(everything)
