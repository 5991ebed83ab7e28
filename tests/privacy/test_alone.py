"""The accountant without the rest of the package: what it loads, and its answers on the command
line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction

import pytest

import sklearn_dpsearch
from sklearn_dpsearch import privacy
from sklearn_dpsearch.privacy.__main__ import main
from sklearn_dpsearch.scoring._noise import DiscreteGaussianNoise, Sensitivity

SGD = privacy.DPSGD(noise_multiplier=2.0, sample_rate=0.01, steps=100)
FAILING = privacy.ApproxDP(epsilon=0.5, delta=1e-9)
ALONE = """
import sys
import sklearn_dpsearch.privacy as privacy
privacy.best_of(privacy.GaussianDP(mu=0.5), 10).epsilon_at(1e-6)
ours = {name.split(".")[1] for name in sys.modules if name.startswith("sklearn_dpsearch.")}
assert ours <= {"privacy", "errors", "_version", "_documentation"}, ours
loaded = {name.partition(".")[0] for name in sys.modules}
libraries = "sklearn joblib pandas torch matplotlib skorch opacus diffprivlib".split()
assert not loaded & set(libraries)
import sklearn_dpsearch
assert sklearn_dpsearch.DPRandomSearchCV.__module__.startswith("sklearn_dpsearch.search")
assert "sklearn" in sys.modules
"""
READ = """
import json, sys
from sklearn_dpsearch.privacy import from_dict
print(from_dict(json.load(sys.stdin)).epsilon_at(1e-6))
"""


def python(*words: str, given: str = "") -> str:
    options = {"capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, *words], input=given, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_accountant_loads_nothing_else_and_the_searches_come_when_they_are_named():
    python("-c", ALONE)


@pytest.mark.slow
def test_a_guarantee_of_a_score_is_read_by_the_accountant_alone():
    one = DiscreteGaussianNoise(Fraction(17, 3)).guarantee(Sensitivity(2, 4), "zero_out")
    assert float(python("-c", READ, given=json.dumps(one.to_dict()))) == one.epsilon_at(1e-6)


def test_every_public_name_is_there_and_others_are_not():
    for name in sklearn_dpsearch.__all__:
        assert getattr(sklearn_dpsearch, name) is not None
    assert set(sklearn_dpsearch.__all__) <= set(dir(sklearn_dpsearch))
    assert sklearn_dpsearch.privacy is privacy
    with pytest.raises(AttributeError, match="no attribute 'DPRandomSearch'"):
        sklearn_dpsearch.DPRandomSearch  # noqa: B018


def numbers(text: str) -> list[float]:
    return [float(line.split("epsilon ")[1].split()[0].rstrip(":")) for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "one_run", "count"), [
    ("--gaussian 0.4 --runs 10", privacy.GaussianDP(mu=0.4), privacy.Geometric(10)),
    (
        "--pure 0.5 --runs 5 --distribution logarithmic", privacy.PureDP(epsilon=0.5),
        privacy.Logarithmic(5),
    ),
    ("--approx 0.5 1e-9 --runs 6 --distribution poisson", FAILING, privacy.Poisson(6)),
    ("--zcdp 0.1 --runs 3 --distribution fixed", privacy.ZCDP(rho=0.1), privacy.Fixed(3)),
    ("--dpsgd 2 0.01 100 --runs 1.5", SGD, privacy.Geometric(1.5)),
])  # fmt: skip
def test_the_command_line_says_what_the_functions_say(capsys, words, one_run, count):
    main([*words.split(), "--delta", "1e-6"])
    one, search, certain = numbers(capsys.readouterr().out)
    assert 0 <= one - one_run.epsilon_at(1e-6) < 1e-3
    assert 0 <= search - privacy.best_of(one_run, count).epsilon_at(1e-6) < 1e-3
    assert 0 <= privacy.witness_epsilon(one_run, count, 1e-6) - certain < 1e-3


def test_relations_and_infinite_losses_are_said(capsys):
    main(["--approx", "1", "1e-3", "--runs", "10", "--delta", "1e-6", "--neighboring", "zero_out"])
    told = capsys.readouterr().out
    assert "zero_out neighbours" in told
    assert told.count("infinity") == 3
    assert math.isinf(privacy.witness_epsilon(privacy.ApproxDP(epsilon=1.0, delta=1e-3), 10, 1e-6))


@pytest.mark.parametrize(("words", "message"), [
    ("--pure -1 --runs 10 --delta 0", "epsilon"),
    ("--pure 1 --runs 2.5 --distribution fixed --delta 0", "2.5"),
    ("--pure 1 --runs 10 --delta 1", "Expected 0 <= delta < 1, got delta=1.0"),
    ("--pure 1 --runs 1e9 --distribution fixed --delta 0", "Expected --runs <= 100000"),
    ("--pure 1 --zcdp 1 --runs 10 --delta 0", "not allowed"),
    ("--runs 10 --delta 0", "required"),
])  # fmt: skip
def test_arguments_without_a_sense_are_refused(capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_it_runs_as_a_module():
    words = ["--gaussian", "0.4", "--runs", "10", "--delta", "1e-6"]
    assert numbers(python("-m", "sklearn_dpsearch.privacy", *words))[0] > 1
