"""An interrupt of the caller is told from an exception that looks like one."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sklearn_dpsearch._process import INTERRUPTS


def test_what_a_candidate_raises_is_no_interrupt():
    with INTERRUPTS.watched():
        with pytest.raises(KeyboardInterrupt):
            raise KeyboardInterrupt("the first record")
        assert INTERRUPTS.raised is None


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_is_one_even_if_somebody_swallows_it():
    before = signal.getsignal(signal.SIGINT)
    with INTERRUPTS.watched():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(10)
        except KeyboardInterrupt:
            pass
        with pytest.raises(KeyboardInterrupt) as caught:
            INTERRUPTS.check()
        assert caught.value.args == ()
    assert signal.getsignal(signal.SIGINT) is before
    with INTERRUPTS.watched():
        assert INTERRUPTS.raised is None


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_what_any_handler_of_the_caller_raises_is_one(monkeypatch):
    def stop(signum, frame):
        raise SystemExit(f"records: {frame}")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with INTERRUPTS.watched():
            with pytest.raises(SystemExit):
                signal.raise_signal(signal.SIGTERM)
            assert INTERRUPTS.raised.args == (1,)
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_other_threads_nothing_is_watched():
    seen = []

    def other():
        with INTERRUPTS.watched():
            seen.append(INTERRUPTS.raised)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [None]
