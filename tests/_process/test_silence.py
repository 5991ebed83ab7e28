"""Silent threads say nothing, others are heard, and afterwards all is as it was, in whatever order they leave."""

from __future__ import annotations

import importlib.machinery
import io
import itertools
import os
import random
import subprocess
import sys
import threading
import types
import warnings

import numpy as np
import pytest

from sklearn_dpsearch._process import DESCRIPTORS, GENERATORS, muted, reseed, without_warnings

from .toys import hearing, speak

STEPS = itertools.permutations(["in a", "in b", "out a", "out b"])
ORDERS = [steps for steps in STEPS if all(steps.index(f"in {name}") < steps.index(f"out {name}") for name in "ab")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fails", [False, True])
def test_two_threads_in_every_order_leave_everything_as_it_was(order, fails):
    turn, problems = {step: threading.Event() for step in order}, []
    done = {step: threading.Event() for step in order}

    def one(name):
        try:
            turn[f"in {name}"].wait(10)
            with muted(), DESCRIPTORS.muted():
                speak(f"secret {name}")
                done[f"in {name}"].set()
                turn[f"out {name}"].wait(10)
                speak(f"secret {name}")
                if fails:
                    raise KeyError(name)
        except KeyError:
            pass
        except BaseException as error:
            problems.append(error)
        done[f"out {name}"].set()

    threads = [threading.Thread(target=one, args=name) for name in "ab"]
    with hearing() as heard:
        for each in threads:
            each.start()
        for step in order:
            speak("public")
            turn[step].set()
            assert done[step].wait(10)
        for each in threads:
            each.join(10)
    assert not problems
    assert "secret" not in heard.getvalue()
    assert heard.getvalue().count("out public") == heard.getvalue().count("record public") == 4
    assert heard.getvalue().count("warning public") >= 4


def test_eight_threads_at_once_leave_everything_as_it_was():
    rng = random.Random(0)
    delays = [[rng.random() / 200 for _ in range(5)] for _ in range(8)]

    def one(i):
        for delay in delays[i]:
            with muted(), DESCRIPTORS.muted(), GENERATORS():
                speak(f"secret {i}")
                threading.Event().wait(delay)
                speak(f"secret {i}")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    said = 0
    with hearing() as heard:
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            speak("public")
            said += 1
    assert "secret" not in heard.getvalue()
    for kind in ("out", "err", "lines", "record"):
        assert heard.getvalue().count(f"{kind} public") == said


def test_a_thread_that_a_silent_one_starts_is_silent_too():
    with hearing() as heard, muted():
        inner = threading.Thread(target=speak, args=("secret",))
        inner.start()
        inner.join()
    assert not heard.getvalue()


def test_a_thread_that_nobody_is_known_to_have_started_is_silent():
    import _thread

    done = threading.Event()
    with hearing() as heard, muted():
        _thread.start_new_thread(lambda: (print("secret"), done.set()), ())
        assert done.wait(10)
    assert not heard.getvalue()


def test_warnings_as_errors_do_not_reach_a_silent_thread_and_are_errors_again_afterwards():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with muted():
            warnings.warn("as good as none", stacklevel=1)
            with warnings.catch_warnings():
                warnings.warn("as good as none", stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("an error", stacklevel=1)


def test_warnings_are_errors_again_though_another_thread_keeps_a_copy_of_the_filters_meanwhile():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before, copied = list(warnings.filters), warnings.catch_warnings()
        with muted():
            copied.__enter__()
        copied.__exit__(None, None, None)
        assert list(warnings.filters) == before


def test_only_warnings_are_withheld_where_only_they_are_to_be():
    with hearing() as heard, without_warnings():
        speak("public")
    assert "warning" not in heard.getvalue()
    assert "out public" in heard.getvalue()
    assert "record public" in heard.getvalue()


def test_a_stream_put_in_place_meanwhile_is_routed_too(monkeypatch):
    entered, go_on, spoken = threading.Event(), threading.Event(), io.StringIO()

    def other():
        with muted():
            entered.set()
            go_on.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    monkeypatch.setattr(sys, "stdout", spoken)
    with muted():
        print("secret")
    go_on.set()
    thread.join()
    assert sys.stdout is spoken
    assert not spoken.getvalue()


SCRIPT = """
import logging, os, subprocess, sys, threading
from sklearn_dpsearch._process import DESCRIPTORS, muted

logging.basicConfig(stream=sys.stderr)
inside, leave = threading.Event(), threading.Event()

def candidate():
    with muted(), DESCRIPTORS.muted():
        inside.set()
        print("secret")
        os.write(1, b"secret")
        print("secret", file=sys.__stdout__)
        logging.error("secret")
        subprocess.run(["echo", "secret"])
        leave.wait(10)

thread = threading.Thread(target=candidate)
thread.start()
inside.wait(10)
print("other stdout")
print("other stderr", file=sys.stderr)
logging.error("other record")
child = os.fork()
if child == 0:
    print("child stdout", flush=True)
    os.write(1, b"child descriptor\\n")
    os._exit(0)
os.waitpid(child, 0)
leave.set()
thread.join()
print("after")
subprocess.run(["echo", "after from a child"])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_what_other_threads_and_their_forked_children_write_reaches_real_descriptors():
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    everything = said.stdout + said.stderr
    assert "secret" not in everything
    for expected in (
        "other stdout", "child stdout", "child descriptor", "after", "after from a child",
    ):  # fmt: skip
        assert expected in said.stdout.splitlines()
    assert "other stderr" in said.stderr
    assert "other record" in said.stderr


def test_the_last_thread_to_leave_puts_the_global_generators_back():
    """Put back by the first, the user's seed would be the noise of the candidate that is still running."""
    np.random.seed(7)
    random.seed(7)
    expected, inside, left, drawn = np.random.get_state()[1].tolist(), threading.Event(), threading.Event(), []

    def first():
        with GENERATORS():
            inside.set()
            entered.wait(10)
        left.set()

    entered = threading.Event()
    thread = threading.Thread(target=first)
    thread.start()
    inside.wait(10)
    with GENERATORS():
        np.random.seed()
        entered.set()
        left.wait(10)
        drawn.append(np.random.get_state()[1].tolist())
    thread.join()
    assert drawn[0] != expected
    assert np.random.get_state()[1].tolist() == expected
    assert random.random() == random.Random(7).random()


def test_a_library_that_another_thread_is_importing_is_left_alone(monkeypatch):
    """PyTorch ended the process when it was asked for the state of its generator meanwhile."""
    half = types.ModuleType("torch")
    half.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    half.__spec__._initializing = True
    half.default_generator = object()  # whose state cannot be asked for
    monkeypatch.setitem(sys.modules, "torch", half)
    with GENERATORS():
        reseed()
