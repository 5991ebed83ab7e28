"""Gradient boosting on public partitions: guarantee, fit and predictions."""

from __future__ import annotations

import functools
import itertools
import numbers
import secrets
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal, Self, TypeAlias

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._documentation import SITE, linked
from .._process import in_fixed_words, steps_now, threads_now
from ..data._columns import names_of
from ..data._labels import check_kind, label_kind, targets_in
from ..data._partitions import is_partitioned
from ..data._persons import persons_in
from ..data._records import Declared, check_same_number, number_of_records, read_features
from ..errors import KnownArguments
from ..ledger._ledger_context import EntersFits, enter_fit
from ..preprocessing import ColumnShape, Schema, TableEncoder
from ..preprocessing._schema import PUBLIC_FACTS, SHOWN_VALUES, check_stated_once
from ..privacy import GaussianDP, Guarantee, PrivacyError, calibrate
from ..privacy._checks import NEIGHBORING, Neighboring, check_size_of_delta
from ..privacy._mechanisms.array_sampling import RandomBytes
from ..privacy._spent import SEEDED_NOISE, Component, PrivacySpent, cost_of_fit
from ..privacy._statement.content import up
from . import _capacity as capacity
from . import _directions as directions
from . import _rounds as rounds
from ._effect_curves import effect_curve
from ._features import BLOCK, MAX_BINS, TableFacts
from ._losses import Array, Loss, SoftmaxLoss
from ._noise import UNIT, NoisySums, noise_scale, squared_distance
from ._partitions import partitioned_records
from ._public_start import ToOutputs, check_init, init_outputs
from ._random_cells import SINGLE_CELL, Partition, PartitionDraws
from ._rounds import Boosted, NoisyRecords, PublicLine, RecordSums, Round, TrainingRecords

#: Accepted seeds; None: the operating system.
Seed: TypeAlias = int | np.random.RandomState | None
#: Ways to state the privacy of one fit.
TARGETS = ("target_epsilon", "target_delta", "target_mu")
#: Attribute for the resolved facts about the table: not in copies, nor in pickles.
FACTS = "_table_facts"
FITTED_ATTRIBUTES = (
    "partitions_", "weights_", "init_weights_", "weight_noise_", "feature_importances_",
    "privacy_spent_", "n_iter_",
)  # fmt: skip
#: Arguments without effect on the noisy sums, or that the public generator shows.
IGNORED_NAMES = ("random_state", "noise_seed", "class_weight", "n_jobs")
#: Capacity that follows from the start, or a number.
ByRule: TypeAlias = Literal["rule"]
RULE = "rule"
#: Factors on ``prior_factor`` that a search tries, drawn log-uniformly between the ends or all in a
#: grid.
FACTORS = (0.7, 1.0, 1.4)


@linked
@dataclass(kw_only=True, eq=False, repr=False, match_args=False)
class GradientBoosting(KnownArguments, EntersFits, BaseEstimator):
    """Gradient boosting on cells that are drawn from a schema, a public seed and what was released.

    Parameters
    ----------
    prior_factor : float, default=1.8
        Expected size of the steps ÷ their size in the rounds before, as their noisy sums show it.
        Steps are shrunk towards zero, as noise and few records make them large: the more, the
        smaller the factor.
    max_bins : int, default=128
        Bins of each range without bins in the schema, from which the cuts of each round are drawn.
        A long range of numbers, from 1000 on, has as many on a logarithmic scale too.
    parts : int or "rule", default="rule"
        Parts that a range or a list is cut into in rounds of one feature. In rounds of two, three
        and four features each has 1 + parts ÷ 4, ÷ 10 and ÷ 16, rounded down; there are none with
        one part alone. "rule": 1.2·√(I ÷ number of features), from 8 to 128, and at most 640 ÷
        number of features. I is μ times the noisy sum of the Hessians at the start: about μ times
        the number of records of the rarer of two classes, or of all for numbers.
    max_features_per_cell : int, default=4
        The most features of a cell.
    expected_samples : float, optional
        Number of records that is expected where theirs is secret, as in a random subset. None:
        theirs, which is public unless ``neighboring="add_remove"``. It makes the start less noisy.
    monotonic_cst : dict or array-like, optional
        1 where the target, or the chance of the second of two classes, rises with a column, -1
        where it falls, 0 where it may do both: by the column's name, or for each column of the
        schema. Public knowledge, as are directions in the schema (``"direction": "increasing"``).
        Predictions keep them, and the start rises along them.
    init : fitted estimator, optional
        Model whose predictions boosting starts from: one that saw no private record, or an earlier
        release, whose cost comes on top. It is asked for each record's own columns, at no cost, and
        is part of the released model. In a search: ``sklearn.frozen.FrozenEstimator(model)``.
        Shapes and importances are without it.
    n_jobs : int, default=None
        Threads that share the records in a fit and in predictions, at most one for each processor,
        which -1 stands for. None: one, unless joblib is configured otherwise. The model is the
        same, to the last bit, for any number. Side by side, candidates of a search share the
        processors; partitions have the threads of Dask.
    schema : Schema or dict
        Columns by name, as ``TableEncoder`` takes them: ranges, lists of all values, dictionaries
        with options. It is public knowledge. Other columns of a data frame are left out.
    target : str, optional
        Column of the schema that is predicted, and no feature. The schema then states ``classes``,
        or ``bounds_y``.
    target_epsilon, target_delta : float, optional
        Guarantee of one fit, to which the noise is calibrated.
    target_mu : float, optional
        Instead: μ of its Gaussian guarantee.
    neighboring : {"add_remove", "zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation. The first two cost the same; under "replace_one" the noise is twice
        as large. The number of records is never used.
    random_state : None, int or RandomState
        Seeds the cells, which are public. Never the noise.
    noise_seed : None, int or RandomState
        For tests only: it voids the guarantee. The noise follows from the seed, the records, the
        cells and all arguments: fits that differ share no noise.

    Attributes
    ----------
    init_weights_ : (ndarray of shape (n_outputs, 1), float)
        With ``init``: constant outputs, and the share of the way from them to its outputs at which
        boosting starts.
    weight_noise_ : list of ndarray of shape (n_outputs, n_cells)
        Standard deviation of the noise in the weights of each round, to first order, from the noisy
        sums: free.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the loss by rounds with one feature, from the noisy
        sums: free.
    n_iter_ : int
        Rounds of the last fit; by rule they follow from its noisy start.
    privacy_spent_ : PrivacySpent
        Cost of the fit.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        The schema's columns without the target; only after ``fit`` on a data frame.

    Notes
    -----
    Each round cuts a few columns at random places, and adds a weight to the output of each of the
    resulting cells: a Newton step from noisy sums of scores and Hessians
    (:doc:`boosting </theory/boosting>`). Totally random trees: Maddock et al. (2022), "Federated
    Boosted Decision Trees with Differential Privacy".
    """

    #: Without a seed, the noise comes from the operating system, in each fit.
    secure_without_seed = True
    #: Persons may come as ``groups``: a search hands them on.
    takes_groups = True
    #: Records may come as ``ChosenRows``: a search need not copy those that train.
    takes_chosen_rows = True
    #: Records may come in partitions of Dask.
    takes_partitions = True
    #: Constructor arguments on which the guarantee depends.
    privacy_parameters: ClassVar[tuple[str, ...]] = (*TARGETS, "neighboring")

    #: Pace of the rounds by rule, and the method of ``init`` that is asked.
    _pace: ClassVar[capacity.Pace]
    _method: ClassVar[str]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "schema": [Mapping, str, PathLike],  # of files ``Schema.of`` says more
        "target": [None, str],
        "target_epsilon": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "target_delta": [None, Interval(numbers.Real, 0, 1, closed="neither")],
        "target_mu": [None, Interval(numbers.Real, 0, None, closed="neither")],
        "neighboring": [StrOptions(set(NEIGHBORING))],
        "random_state": ["random_state"],
        "noise_seed": ["random_state"],
        "max_iter": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({RULE})],
        "learning_rate": [Interval(numbers.Real, 0, 1e6, closed="right"), StrOptions({RULE})],
        "prior_factor": [Interval(numbers.Real, 1e-6, 1e6, closed="both")],
        "max_bins": [Interval(numbers.Integral, 2, None, closed="left")],
        "parts": [Interval(numbers.Integral, 2, None, closed="left"), StrOptions({RULE})],
        "max_features_per_cell": [Interval(numbers.Integral, 1, None, closed="left")],
        "monotonic_cst": [dict, "array-like", None],
        "expected_samples": [Interval(numbers.Real, 0, None, closed="neither"), None],
        "n_jobs": [
            None,
            Interval(numbers.Integral, 0, None, closed="neither"),
            Interval(numbers.Integral, None, 0, closed="neither"),
        ],
    }
    schema: Schema | Mapping[str, Any] = field(kw_only=False)
    target: str | None = None
    target_epsilon: float | None = None
    target_delta: float | None = None
    target_mu: float | None = None
    neighboring: Neighboring = "zero_out"
    random_state: Seed = None
    noise_seed: Seed = None
    max_iter: int | ByRule = "rule"
    learning_rate: float | ByRule = "rule"
    prior_factor: float = 1.8
    max_bins: int = MAX_BINS
    parts: int | ByRule = "rule"
    max_features_per_cell: int = 4
    expected_samples: float | None = None
    monotonic_cst: Mapping[str, int] | ArrayLike | None = None
    init: Any = None
    n_jobs: int | None = None

    @property
    def _facts(self) -> TableFacts:
        """Facts about the table, resolved anew where an argument was replaced."""
        facts: TableFacts | None = vars(self).get(FACTS)
        if facts is None or not facts.follow_from(self):
            facts = self.__dict__[FACTS] = TableFacts(self)
        return facts

    @property
    def public_facts(self) -> dict[str, Any]:
        """Facts about the target from the schema, by parameter: ``classes`` or ``bounds_y``."""
        return self._facts.of_target

    def made_up(self, n_samples: int = 200, random_state: int = 0) -> Any:
        """Make up records that fit the schema, for a dry run.

        They hold nothing about real records.

        Parameters
        ----------
        n_samples : int
        random_state : int
            A public seed.

        Returns
        -------
        DataFrame of shape (n_samples, n_columns)
            Of pandas; without it an array of objects.
        """
        return TableEncoder(self._facts.features).made_up(n_samples, random_state)

    def columns_read(self) -> list[str]:
        """One line for each column, as the schema is understood.

        For example ``age: number from 18 to 90, 17 bins``.
        """
        columns = self._facts.coded.described(SHOWN_VALUES)
        if self.target is None:
            return columns
        (target,) = self._facts.schema.only(self.target).described({}, SHOWN_VALUES)
        return [*columns, f"{target} (the target)"]

    # --- guarantee of one fit, from constructor arguments alone -----------------------------------

    def privacy_guarantee(self, n_samples: int | None = None) -> Guarantee:
        """Guarantee of one ``fit``; no data is needed.

        Parameters
        ----------
        n_samples : int, optional
            Not used: noise does not depend on the number of records.

        Returns
        -------
        GaussianDP
        """
        self._check_arguments()
        return GaussianDP(mu=self._mu(), neighboring=self.neighboring)

    def privacy_assumptions(self) -> tuple[str, ...]:
        """Assumptions of the guarantee, as plain sentences."""
        return tuple(f"{type(self).__name__}: {sentence}" for sentence in self._assumptions())

    def _assumptions(self) -> Iterator[str]:
        """Assumptions of the guarantee, without the name of the class."""
        yield PUBLIC_FACTS
        yield "SciPy's quantiles of the normal distribution have an error below 2^-46."
        if self.init is not None:
            kind = type(getattr(self.init, "estimator", self.init)).__name__
            spent, cost = getattr(self.init, "privacy_spent_", None), ""
            if isinstance(spent, PrivacySpent):
                cost = f" (epsilon = {up(spent.epsilon)} at delta = {spent.delta:g})"
            yield (
                f"init ({kind}) saw no private record, or is an earlier release, whose cost{cost} "
                "comes on top; what it predicts for a record depends on that record alone, to the "
                "last bit."
            )
        ways, columns = {-1: "falling", 1: "rising"}, self._facts.features.columns
        directed = {name: column.direction for name, column in columns.items() if column.direction}
        if directed:
            stated = ", ".join(f"{column} {ways[way]}" for column, way in directed.items())
            yield f"the directions of columns were not taken from the records: {stated}."
        if self.noise_seed is not None:
            yield SEEDED_NOISE

    def check_target_of_partitions(self, name: str) -> None:
        """Raise for a column that is a feature too, in a table that comes in partitions."""
        if name in self._facts.features:
            raise ValueError(
                f"Found the target {name!r} among the features. Give target={name!r} to the model."
            )

    def expecting(self, n: float) -> dict[str, Any]:
        """Parameters with which ``fit`` counts no records, but expects ``n``.

        The same guarantee without a δ to compare with 1/n.
        """
        unchanged: dict[str, Any] = {} if self.target_delta is None else self.scaled_privacy(1.0)
        return {**unchanged, "expected_samples": n}

    def under(self, neighboring: Neighboring) -> dict[str, Any]:
        """Parameters for a guarantee, and for targets, under these neighbours.

        A target for a replaced record is halved for one that is blanked: its replacement, in two
        such steps, costs what it did.
        """
        halved = self._has_target and self.neighboring == "replace_one" != neighboring
        return {"neighboring": neighboring, **(self.scaled_privacy(0.5) if halved else {})}

    def scaled_privacy(
        self, factor: float, varying: frozenset[str] = frozenset()
    ) -> dict[str, float | None]:
        """Parameters that make every fit ``factor`` times less private.

        1 stands for the target as configured, and without a target for μ = 1.
        """
        mu = self._mu() if self._has_target else 1.0
        return {**dict.fromkeys(TARGETS), "target_mu": mu * factor}

    def search_space(self, *, grid: bool = False) -> list[dict[str, Any]]:
        """Candidates around the current parameters, for ``param_distributions="auto"`` of a search.

        Parameters
        ----------
        grid : bool, default=False
            Whether short lists of values are needed, for a whole grid.

        Returns
        -------
        list of dict
            Parameter name to a list of values or a distribution.
        """
        low, middle, high = (self.prior_factor * factor for factor in FACTORS)
        return [{"prior_factor": [low, middle, high] if grid else loguniform(low, high)}]

    @property
    def _has_target(self) -> bool:
        """Return whether a target is given."""
        return any(getattr(self, name) is not None for name in TARGETS)

    def _mu(self) -> float:
        """μ of one fit, as stated or calibrated."""
        targets = {name: getattr(self, name) for name in TARGETS}
        stated = {name: float(value) for name, value in targets.items() if value is not None}
        if set(stated) not in ({"target_epsilon", "target_delta"}, {"target_mu"}):
            raise PrivacyError(
                f"Found {stated or 'none of target_epsilon, target_delta, target_mu'}; "
                "target_epsilon with target_delta, or target_mu, is needed: target_epsilon=1.0, "
                f"target_delta=1e-6, say, and in a search epsilon=1.0, delta=1e-6 of the search "
                f"alone. How to choose them: {SITE}/learn/budget.html."
            )
        if "target_mu" in stated:
            return stated["target_mu"]
        return calibrated_mu(stated["target_epsilon"], stated["target_delta"])

    def _check_arguments(self) -> None:
        """Raise for arguments that are wrong for all data."""
        self._validate_params()
        self.__dict__.pop(FACTS, None)  # a dictionary of columns may have changed
        if self.init is not None:
            check_init(self.init, self._method, type(self).__name__, self.neighboring)
            if self._facts.coded.directed:
                raise ValueError(
                    f"Found init and directions of columns (monotonic_cst, or in the schema) of "
                    f"{type(self).__name__}; predictions of init may have others. Leave one of "
                    f"them out."
                )
        n_rounds = self._pace.maximum if self.max_iter == RULE else int(self.max_iter)
        # no loss needs more
        noise_scale(self._mu(), self._n_releases(n_rounds), self.neighboring, SoftmaxLoss(2))
        check_stated_once(self, self.public_facts)

    def _declared(self, name: str) -> Any:
        return self.public_facts.get(name, getattr(self, name))

    # --- fit --------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, groups: Any = None, *, newlines_in_values: bool = False) -> Self:
        """Train on the records.

        Parameters
        ----------
        X : DataFrame of pandas or polars, or array of shape (n_samples, n_features)
            With the schema's columns; an array has them in the schema's order. Or partitions, which
            stay where they are: a DataFrame of Dask, a list of delayed frames, or a list of files
            (CSV, Parquet).
        y : array-like of shape (n_samples,)
            Of partitions: the name of a column, or a Series of Dask.
        groups : array-like of shape (n_samples,), optional
            Person of each record: numbers, texts, or other values with a hash; a missing one is a
            person of its own. With ``groups`` the guarantee is for persons, all of whose records
            are neighbours together, and the number of persons is public in place of that of
            records. Of partitions: the name of a column; a person counts in the first of his.
        newlines_in_values : bool, default=False
            Of CSV files: whether quoted values hold ends of lines. False: each line is a record, so
            that such a value makes several of one. True: every quote has to be closed, as an open
            one swallows the records after it. The statement says either.

        Returns
        -------
        self : object
        """
        self._check_arguments()
        for name in FITTED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs y, the target of each record, and got None."
            )
        with (
            partitioned_records(self, X, y, groups, newlines_in_values)
            if is_partitioned(X)
            else self._records(X, y, groups)
        ) as records:
            # else their number is private
            if self.target_delta is not None and self.neighboring != "add_remove":
                unit = "person" if records.of_persons else "record"
                check_size_of_delta("target_delta", float(self.target_delta), records.n_units, unit)
            self._note_features(X)
            spent = self._cost_of_fit(records)
            enter_fit(self, spent, list(self._facts.features))
            in_fixed_words(type(self).__name__, partial(self._train, records))
            self.privacy_spent_ = spent
        return self

    def _cost_of_fit(self, records: RecordSums) -> PrivacySpent:
        """Cost of a fit, before it uses a record."""
        guarantee = GaussianDP(mu=self._mu(), neighboring=self.neighboring)
        return cost_of_fit(
            self,
            Component(name="training", guarantee=guarantee),
            (*self.privacy_assumptions(), *records.assumptions),
            "person" if records.of_persons else "record",
            n_samples=None if self.neighboring == "add_remove" else records.n_units,
            columns=tuple(self._facts.features),
        )

    def _train(self, records: RecordSums) -> None:
        seed: Any = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**32, size=4, dtype=np.uint64)
        public = np.random.default_rng(seed)
        loss, of_persons = records.loss, records.of_persons
        random_bytes = self._noise_source(records, repr(public.bit_generator.state))
        squared = squared_distance(loss, self.neighboring, of_persons)

        def noisy_records(releases: int | Fraction) -> NoisyRecords:
            scale = noise_scale(self._mu(), releases, self.neighboring, loss, of_persons)
            release = NoisySums(loss, scale, random_bytes, squared).release
            return NoisyRecords(records, release, scale / UNIT)

        noisy = noisy_records(capacity.START)
        start = rounds.release_start(noisy, self._public_number(records))
        line, index, coded = None, list[Round](), self._facts.coded
        first, n_features = start.outputs, len(coded.features)
        if self.init is not None:
            line = PublicLine(start.outputs)
            start = line.start(noisy, start.n_records)
            first = start.outputs
        elif coded.directed:
            start, index = directions.start_along_index(noisy, start, n_features, public)
        # both are released
        information, size = self._mu() * float(start.total.mean()), self._mu() * start.n_records
        n_rounds = steps_now(self._n_rounds(information, size))
        groups = self._groups(information, n_features)
        draws = PartitionDraws(coded.features, n_rounds, groups, public)
        rule = partial(directions.without_interactions, coded.features) if coded.directed else None
        noisy, factor = noisy_records(self._n_releases(n_rounds)), float(self.prior_factor)
        by_rule = self.learning_rate == RULE
        rate = capacity.step_by_rule(n_rounds, self._pace) if by_rule else float(self.learning_rate)
        boosted = rounds.boost(noisy, start, draws, rate, factor, line=line, rule=rule)
        if line is not None:
            self.init_weights_ = (line.constant, line.way)
        self._set_rounds(first, index, draws.drawn, boosted)

    def _set_rounds(
        self, first: Array, index: Sequence[Round], drawn: Sequence[Partition], boosted: Boosted
    ) -> None:
        """Set the fitted attributes that follow from the start, its index, and all rounds."""
        features, self.n_iter_ = self._facts.coded.features, len(drawn)
        importances = np.zeros(1 + max(feature.column for feature in features))
        for partition, gain in zip(drawn, boosted.gains[1:]):
            if len(partition.features) == 1:  # the gains of several columns are no column's
                importances[features[partition.features[0]].column] += gain
        importances = np.maximum(importances, 0.0)
        self.feature_importances_ = importances / (importances.sum() or 1.0)
        terms = list(map(Round, drawn, boosted.weights[1:], boosted.noise))
        if self._facts.coded.directed:
            terms, constant = directions.monotone_terms(features, terms, boosted.hessians)
            first = first + constant
        partitions, weights, noise = zip(*index, *terms)
        self.partitions_: list[Any] = list(map(tuple, [SINGLE_CELL, *partitions]))
        self.weights_, self.weight_noise_ = [first, *weights], list(noise)

    def _records(self, X: Any, y: Any, groups: Any = None) -> TrainingRecords:
        """Read a table and its targets as records for boosting."""
        # without a public number, none may be told from one
        fewest = 0 if self.neighboring == "add_remove" else 1
        numeric = isinstance(self, RegressorMixin)
        if not numeric and (declared := self._declared("classes")) is not None:
            check_kind(declared, label_kind(y))
        y = targets_in(y, numeric=numeric, fewest=fewest)
        check_same_number(number_of_records(X), len(y))
        persons = None if groups is None else persons_in(groups, len(y))
        loss, targets, blank = self._loss_and_targets(y)
        codes = self._facts.coded.codes(X)
        initial = None if self.init is None else self._init_outputs(X, codes.shape[1], fitting=True)
        n_threads = threads_now(self.n_jobs)
        return TrainingRecords(codes, targets, loss, persons, initial, blank, n_threads)

    def _public_number(self, records: RecordSums) -> float | None:
        """Number of records as far as it is public; persons have any number of them."""
        if records.of_persons:
            return None
        is_secret = self.expected_samples is not None or self.neighboring == "add_remove"
        return self.expected_samples if is_secret else records.n_units

    def _noise_source(self, records: RecordSums, generator: str) -> RandomBytes:
        """Source of random bytes for the noise of a fit.

        The operating system; or, for tests, a seed and all that the fit depends on. Fits that
        differ in anything have independent noise: with one noise for both, their difference would
        be exact.
        """
        if (seed := self.noise_seed) is None:
            return secrets.token_bytes
        arguments = {k: value for k, value in self.get_params().items() if k not in IGNORED_NAMES}
        of_fit = joblib.hash((type(self).__name__, arguments, records.fingerprint(), generator))
        words = check_random_state(seed).randint(2**32, size=8, dtype=np.uint64).tolist()
        words += np.frombuffer(bytes.fromhex(of_fit), np.uint32).tolist()
        return np.random.RandomState(words).bytes

    def _n_releases(self, n_rounds: int) -> Fraction:
        """Number of equal releases of which a round is one.

        Beside them are starts with a share of 1/START of μ² each.
        """
        starts, steps = (1, 0)
        if self.init is not None:
            starts, steps = 2 + len(rounds.SHARES), n_rounds // rounds.STEP_ROUNDS
        if self._facts.coded.directed:
            starts += directions.RELEASES
        return Fraction((n_rounds + steps) * capacity.START, capacity.START - starts)

    def _n_rounds(self, information: float, size: float) -> int:
        if self.max_iter == RULE:
            return capacity.rounds_by_rule(information, size, self._pace)
        return int(self.max_iter)

    def _groups(self, information: float, n_features: int) -> Mapping[int, int]:
        by_rule = self.parts == RULE
        parts = capacity.parts_by_rule(information, n_features) if by_rule else int(self.parts)
        return capacity.parts_by_cell_width(parts, int(self.max_features_per_cell))

    def _note_features(self, X: Any) -> None:
        schema = self._facts.features
        self.n_features_in_ = len(schema)
        self.__dict__.pop("feature_names_in_", None)
        if is_partitioned(X) or names_of(X) is not None:
            self.feature_names_in_ = np.array(list(schema), dtype=object)

    # --- predictions ------------------------------------------------------------------------------

    def _staged_outputs(self, X: Any) -> Iterator[Array]:
        """Outputs after each round, shape (n_outputs, n_samples), in one array that changes."""
        check_is_fitted(self, "weights_")
        coded = self._facts.coded
        if coded.directed:
            raise ValueError(
                f"Found directions of columns of {type(self).__name__}, which only the whole model "
                "keeps: it has no predictions after each round. Use predict, or leave the "
                "directions out."
            )
        codes = coded.codes(X)
        partitions = list(itertools.starmap(Partition, self.partitions_))
        outputs = self._init_outputs(X, codes.shape[1])
        staged = rounds.staged_outputs(partitions, self.weights_, codes, outputs)
        next(staged)  # the start alone is no round
        yield from staged

    def _outputs(self, X: Any) -> Array:
        """Outputs of boosting for a table, shape (n_outputs, n_samples)."""
        check_is_fitted(self, "weights_")
        codes = self._facts.coded.codes(X)
        partitions = list(itertools.starmap(Partition, self.partitions_))
        outputs = self._init_outputs(X, codes.shape[1])

        def predict_block(part: slice) -> None:
            block = codes[:, part], outputs[:, part]
            for _ in rounds.staged_outputs(partitions, self.weights_, *block):
                pass  # changed in place

        blocks = (slice(start, start + BLOCK) for start in range(0, codes.shape[1], BLOCK))
        in_threads = joblib.Parallel(n_jobs=threads_now(self.n_jobs), require="sharedmem")
        in_threads(joblib.delayed(predict_block)(part) for part in blocks)
        return outputs

    def _init_outputs(self, X: Any, n_samples: int, *, fitting: bool = False) -> Array:
        """Outputs at which boosting starts, or of ``init`` itself, shape (n_outputs, n_samples).

        Without ``init`` they are 0.
        """
        to_outputs, n_outputs = self._from_init()
        if self.init is None:
            return np.zeros((n_outputs, n_samples))
        declared = Declared(of_objects=True, row_shape=(len(self._facts.features),))
        records = read_features(X, declared)
        outputs = init_outputs(self.init, self._method, records, to_outputs, n_outputs)
        if fitting:
            return outputs
        constant, way = self.init_weights_
        return rounds.outputs_on_line(constant, outputs, way)

    def shapes(self, columns: Sequence[str] | None = None) -> dict[str, ColumnShape]:
        """Effects of the values of each column.

        With ``max_features_per_cell=1`` their sum is the whole model.

        They follow from the schema and the released weights: no record is needed, and they cost no
        privacy. The effect of a value is the mean output over the other columns of its cells, in
        which all bins of a range, all values of a list and all buckets count the same, and missing
        values not at all.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns of the schema; None: all.

        Returns
        -------
        dict of str to ColumnShape
            By column, with a curve for the log odds of the second of two classes, for each of more
            classes (the log of its probability, less the mean over classes), or for a number in its
            unit. The months, weekdays and hours of a date have shapes of their own: ``since_month``
            … The noise is that of all sums, to first order.
        """
        check_is_fitted(self, "weights_")
        coded, schema = self._facts.coded, self._facts.features
        wanted = list(schema) if columns is None else list(schema.only(*columns))
        arrays = zip(self.partitions_[1:], self.weights_[1:], self.weight_noise_)
        steps = [Round(Partition(*fields), *weights) for fields, *weights in arrays]
        features, places = list(zip(coded.features, coded.values())), list(schema)
        return {
            values.name: effect_curve(steps, place, values, self._curves_of_outputs())
            for name in wanted
            for place, (feature, values) in enumerate(features)
            if feature.column == places.index(name)
        }

    def __getstate__(self) -> dict[str, Any]:
        """State of a model for a pickle, without the resolved schema."""
        return {name: value for name, value in super().__getstate__().items() if name != FACTS}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    # --- hooks for classes and numbers ------------------------------------------------------------

    @abstractmethod
    def _from_init(self) -> tuple[ToOutputs, int]:
        """Answers of ``init`` ↦ outputs, and the number of outputs."""

    @abstractmethod
    def _loss_and_targets(self, y: NDArray[Any]) -> tuple[Loss, NDArray[Any], NDArray[np.bool_]]:
        """Loss, the targets that it takes, and whether a record has none."""

    @abstractmethod
    def _curves_of_outputs(self) -> Array:
        """Curves as sums of outputs, shape (n_curves, n_outputs)."""


@functools.lru_cache(maxsize=1024)  # the guarantee is computed before, in and after each fit
def calibrated_mu(epsilon: float, delta: float) -> float:
    """The largest μ found with which μ-GDP is (ε, δ)-private."""
    return calibrate(lambda mu: GaussianDP(mu=mu), epsilon, delta)
