"""The ledger of one data set."""

from __future__ import annotations

import io
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, cast

from sklearn.base import clone

from .._process import in_fixed_words, reseed
from .._version import __version__
from ..adapters import Adapter, adapter_for
from ..adapters._adapter import is_ours
from ..adapters._refused_estimators import refuse_values_of_records
from ..adapters._seeds import forget_seeds, seed_names
from ..data._columns import names_of
from ..data._records import Declared, Records, read_records
from ..privacy import BudgetExceededError, Guarantee, PrivacyError
from ..privacy._checks import (
    Neighboring,
    check_kind,
    check_neighboring,
    number_in,
    plain_number,
    require,
)
from ..privacy._guarantees.base import as_guarantee
from ..privacy._spent import Component, PrivacySpent
from ..privacy._statement.content import SENTENCES, up
from . import _entry
from . import _ledger_file as ledger_file
from ._entry import Entry
from ._ledger_context import counted, enter_block, in_words, leave_block
from ._policy import Policy, budget_under, check_entry, check_risk, read_policy


class PrivacyLedger:
    """Ledger of the privacy cost on one data set, in a file.

    It counts across fits, processes and crashes.

    A fit enters its cost before it uses the first record, and waits until the entry is on the disk.
    If the total of all entries would exceed the budget, the fit raises ``BudgetExceededError``
    instead. An entry stays spent, even if the fit fails.

    Parameters
    ----------
    path : str or path-like
        The file; one for each data set. An existing file is opened, a missing one is begun.
    epsilon, delta : float, optional
        The budget, ε > 0 and 0 ≤ δ < 1; ``epsilon=float("inf")`` counts and refuses nothing. Needed
        to begin a file. An existing file has its own budget; other numbers are refused.
    neighboring : {"add_remove", "zero_out", "replace_one"}, optional
        The neighbouring relation of the ledger; None: that of the first entry. Entries under
        another relation are refused, except that ``"replace_one"`` accepts and converts all.
    policy : str or path-like, optional
        A TOML file with rules that a new ledger keeps for good: largest ``epsilon`` and ``delta``,
        which are also its budget if none is given, ``neighboring``, ``unit``, the largest
        ``advantage`` of an attack on the total, and ``tuning = "included"``, by which only searches
        are entered.

    Attributes
    ----------
    path : str
        The file's full name.
    epsilon, delta : float
        The budget; every ε is stated at its δ.
    neighboring : str or None
        The relation given when the ledger was begun; None for that of the first entry.
    policy : dict or None
        The rules of the policy with which the ledger was begun.

    Notes
    -----
    Inside of ``with ledger:`` every private fit of this library enters itself, in this process and
    its worker processes: models, searches, ``schema_report``. Searches also take it as ``ledger=``.
    ``fit`` enters models of other libraries, and ``spend`` all other releases.

    Composition is sequential, also for folds, which share records (docs/learn/ledger.md). The file
    is as public as ``privacy_spent_``: nothing in it depends on the records.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_dpsearch.privacy import GaussianDP
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/adult.ledger", epsilon=3, delta=1e-5)
    >>> ledger.spend(GaussianDP(mu=0.3), label="mean age")
    >>> ledger.spend(GaussianDP(mu=0.4), label="model")
    >>> round(ledger.spent().epsilon, 3), round(ledger.remaining(), 3)
    (1.993, 2.068)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighboring: Neighboring | None = None,
        policy: str | os.PathLike[str] | None = None,
    ) -> None:
        stated = {"epsilon": epsilon, "delta": delta, "neighboring": neighboring}
        if epsilon is not None:
            require(plain_number("epsilon", epsilon) > 0, "a budget epsilon > 0", epsilon=epsilon)
        if delta is not None:
            number_in("[0, 1)", delta=delta)
        if neighboring is not None:
            check_neighboring(neighboring)
        self.path = os.path.realpath(os.path.expanduser(path))
        self._file, self._label = Path(self.path), ""
        rules = None if policy is None else read_policy(policy)
        if not os.path.exists(self.path):
            budget = budget_under(rules or {}, **stated)
            header = self._new_header(**budget, policy=rules)
            with ledger_file.locked(self._file):
                if not os.path.exists(self.path):  # no other process was faster
                    ledger_file.begin(self._file, header)
        pages = ledger_file.read(self._file)
        self._seen = [(len(pages.bodies), pages.digest)]  # of all ledgers derived from this one
        self._begun: Mapping[str, Any] = pages.header
        self._check_same(**stated, policy=rules)

    # --- the file ---------------------------------------------------------------------------------

    # read-only, as a budget must not grow

    @property
    def epsilon(self) -> float:
        """The budget's ε."""
        return math.inf if self._begun["epsilon"] is None else float(self._begun["epsilon"])

    @property
    def delta(self) -> float:
        """The budget's δ, at which every ε is stated."""
        return float(self._begun["delta"])

    @property
    def neighboring(self) -> Neighboring | None:
        """Relation given when the ledger was begun; None for that of the first entry."""
        return cast(Neighboring | None, self._begun["neighboring"])

    @property
    def policy(self) -> Policy | None:
        """The rules of the policy with which the ledger was begun."""
        return cast(Policy | None, self._begun.get("policy"))

    def _pages(self) -> ledger_file.Pages:
        """Current content of the ledger's file, with all that was read before."""
        # before it is read: another thread may enter something meanwhile
        number, digest = self._seen[0]
        pages = ledger_file.read(self._file)
        if pages.digests[number : number + 1] != (digest,):
            raise PrivacyError(
                f"Found another ledger in the place of {self.path!r}, or its last entries cut off "
                f"({len(pages.bodies)} are there); the file as it was, with {number} entries, is "
                "needed, as costs stay spent. Put it back; or open it anew, PrivacyLedger(path), "
                "and enter the missing ones by hand."
            )
        self._remember_pages(pages)
        return pages

    def _remember_pages(self, pages: ledger_file.Pages) -> None:
        """Remember how many entries were seen, and the last digest."""
        if len(pages.bodies) > self._seen[0][0]:
            self._seen[0] = len(pages.bodies), pages.digest

    def _new_header(self, epsilon: Any, delta: Any, **rules: Any) -> dict[str, Any]:
        """Header of a new ledger's file."""
        if epsilon is None or delta is None:
            raise PrivacyError(
                f"Found no ledger {self.path!r}, epsilon={epsilon} and delta={delta}; the budget "
                "is needed to begin one. Give both, or the path of a ledger that exists."
            )
        return {
            "epsilon": None if math.isinf(epsilon) else float(epsilon),  # JSON has no infinity
            "delta": float(delta),
            **rules,
            "unit": None,  # that of the first entry; earlier versions wrote "record"
            "id": uuid.uuid4().hex,
            "day": _entry.today(),
            "library": __version__,
        }

    def _check_same(self, **budget: Any) -> None:
        """Raise if the ledger was begun with another budget."""
        begun = {name: getattr(self, name) for name in budget}
        wrong = [name for name, value in budget.items() if value not in (None, begun[name])]
        if wrong:
            differing = ", ".join(f"{name}={budget[name]!r}" for name in wrong)
            needed = ", ".join(f"{name}={begun[name]!r}" for name in wrong)
            raise PrivacyError(
                f"Found {differing} for the ledger {self.path!r}, which was begun with {needed}; "
                "the same is needed, as a budget must not grow. Leave it out to open the ledger as "
                "it is. A larger budget needs another ledger: begin one, and enter there what was "
                "spent here (new.spend(old.spent()))."
            )

    def entries(self) -> tuple[Entry, ...]:
        """Entries so far, in order.

        Returns
        -------
        tuple of Entry
        """
        return tuple(map(_entry.read_entry, self._pages().bodies))

    # --- what is spent ----------------------------------------------------------------------------

    def spent(self) -> PrivacySpent:
        """The total of all entries.

        Returns
        -------
        PrivacySpent
            At the ledger's δ; its components are the entries. Its statement has the budget and what
            is left.
        """
        unit = self._ledger_unit(entries := self.entries())
        entries = tuple(_entry.entry_in_unit(entry, unit) for entry in entries)
        relation = _entry.ledger_relation(entries, self.neighboring)
        stated = dict.fromkeys(text for entry in entries for text in entry.assumptions)
        sentences = SENTENCES["ledger"]
        assumptions = [*stated, *sentences["always"]]
        if unit == "record" and any(entry.unit != unit for entry in entries):
            assumptions.append(sentences["persons"])
        if converted := sorted({entry.guarantee.neighboring for entry in entries} - {relation}):
            relations, sentence = " and ".join(converted), sentences["converted"]
            assumptions.append(sentence.format(relations=relations, relation=relation))
        guarantees = [_entry.stated_under(entry.guarantee, relation) for entry in entries]
        parts = zip([entry.title for entry in entries], guarantees)
        return PrivacySpent(
            guarantee=_entry.total_guarantee(entries, relation),
            delta=self.delta,
            components=tuple(Component(name=name, guarantee=part) for name, part in parts),
            assumptions=tuple(assumptions),
            unit=unit,
            budget=self.epsilon if math.isfinite(self.epsilon) else None,
        )

    def remaining(self) -> float:
        """Largest ε that one more release alone may cost, at the ledger's δ.

        Composition is not the sum of ε, so the answer depends on the mechanism: here Gaussian,
        which is close to private training; with δ = 0 pure.

        Returns
        -------
        float
            Slightly rounded down; 0 if the budget is spent, infinite if the budget is infinite.
        """
        return _entry.epsilon_left(self.spent().guarantee, self.epsilon, self.delta)

    def _ledger_unit(self, entries: Sequence[Entry]) -> str:
        """Unit of the ledger: that of its first entry."""
        return str(self._begun["unit"] or (entries[0].unit if entries else "record"))

    # --- entering ---------------------------------------------------------------------------------

    def spend(self, guarantee: Guarantee | PrivacySpent, label: str = "") -> None:
        """Enter a release by hand, **before** the records are used for it.

        Parameters
        ----------
        guarantee : Guarantee or PrivacySpent
            Guarantee of the release: of a net, say, ``net.privacy_guarantee(n_samples)``.
        label : str
            Name of the release.

        Raises
        ------
        BudgetExceededError
            If the total would be more than the budget. Nothing is entered then.
        """
        self._add_entry(_entry.MANUAL_ENTRY, guarantee, label)

    def fit(self, model: Any, X: Any, y: Any = None, **params: Any) -> Any:
        """Enter the fit of any estimator whose guarantee is known, and fit it.

        For models of other libraries (diffprivlib, DP-EBM, Opacus, a pipeline with one of them),
        whose fits a block cannot see. They are fitted as in a search: with fresh randomness,
        whatever their seeds are, and the settings that the guarantee needs; what was not done as
        planned is an error, and exact statistics are not kept. Global generators have a fresh state
        from then on. Models and searches of this library enter themselves.

        Parameters
        ----------
        model : estimator
            Not fitted. Of another library it stays so.
        X, y : array-like
            Records, and their targets.
        **params : dict
            Passed to its ``fit``; of another library none with a value for each record.

        Returns
        -------
        estimator
            The model, fitted; of another library a clone of it.

        Raises
        ------
        UnknownGuaranteeError
            If nothing is known about what a fit promises: enter it with ``spend``.
        BudgetExceededError
            If it would cost more than the budget allows. Nothing is read then.
        LeakingEstimatorError
            If a fit did something else than it promised. Its entry stays.
        """
        if is_ours(type(model)):
            with self:
                return model.fit(X, *([] if y is None else [y]), **params)
        refuse_values_of_records(params)
        name, adapter = type(model).__name__, adapter_for(model)
        records = read_records(X, y, Declared())
        run = adapter.training_run(model, records.n)
        spent = PrivacySpent(
            guarantee=run.guarantee,
            delta=self.delta,
            components=(Component(name=name, guarantee=run.guarantee),),
            assumptions=run.assumptions,
        )
        self._spend_fit(name, spent, about=in_words(names_of(X)))
        with counted(), redirect_stdout(io.StringIO()):  # which could show losses
            reseed()  # for good: a state put back would be that of a fit in another thread
            return in_fixed_words(name, partial(_trained_clone, adapter, model, records, params))

    def _spend_fit(
        self, name: str, spent: PrivacySpent, entry: str | None = None, about: str = ""
    ) -> None:
        """Enter a fit before its first use of a record, with what it is about.

        A fit resumed after a crash has its entry already.
        """
        label = f"{self._label} ({about})" if self._label and about else self._label or about
        self._add_entry(name, spent, label, **({} if entry is None else {"id": entry}))

    def _add_entry(
        self, name: str, spent: Guarantee | PrivacySpent, label: str = "", **stated: Any
    ) -> None:
        """Check the budget and write an entry, in one step.

        The step is one for all processes. An existing entry stays.
        """
        if isinstance(spent, PrivacySpent):
            stated |= {"delta": spent.delta, "unit": spent.unit}
            stated["assumptions"] = tuple(spent.assumptions)
        check_kind("label", label, str, "text, e.g. label='baseline',")
        stated |= {"name": name, "label": label or self._label, "guarantee": as_guarantee(spent)}
        new = Entry(**stated, library=__version__)
        entry = _entry.read_entry(new.written())  # as it will be read from the file
        with ledger_file.locked(self._file):
            pages = self._pages()
            entries = tuple(map(_entry.read_entry, pages.bodies))
            if all(earlier.id != entry.id for earlier in entries):
                self._check(entries, entry)
                self._remember_pages(ledger_file.add(self._file, pages, entry.written()))

    def _check(self, entries: Sequence[Entry], more: Entry) -> None:
        """Raise if one more entry exceeds the budget, or cannot be under the ledger's relation."""
        policy, unit = self.policy or {}, self._ledger_unit([*entries, more])
        check_entry(policy, more)
        _entry.check_unit(more, unit)
        entries, more = (
            [_entry.entry_in_unit(entry, unit) for entry in entries],
            _entry.entry_in_unit(more, unit),
        )
        together = [*entries, more]
        relation = _entry.ledger_relation(together, self.neighboring)
        _entry.stated_under(more.guarantee, relation)
        check_risk(policy, more, _entry.total_guarantee(together, relation))
        if math.isinf(self.epsilon):
            return
        total = _entry.total_epsilon(together, relation, self.delta)
        if total <= self.epsilon:
            return
        alone, before = (
            _entry.total_epsilon(part, relation, self.delta) for part in ([more], entries)
        )
        raise BudgetExceededError(
            f"Found {more.title}, which costs ε = {up(alone)} alone and ε = {up(total)} together "
            f"with what was spent before (ε = {up(before)}), all at δ = {self.delta:g}; at most ε "
            f"= {self.epsilon:g} in total is allowed by the ledger {self.path!r}. Give a smaller "
            "epsilon: ledger.remaining() says how much is left. No record was used."
        )

    # --- blocks and labels ------------------------------------------------------------------------

    def __enter__(self) -> PrivacyLedger:
        enter_block(self)
        return self

    def __exit__(self, *raised: object) -> None:
        leave_block(self)

    def label(self, text: str) -> PrivacyLedger:
        """Ledger on the same file that gives its entries a label.

        Parameters
        ----------
        text : str
            Name of the entries.

        Returns
        -------
        PrivacyLedger
            Of the same file: ``ledger=ledger.label("baseline")``, ``with ledger.label("folds"):``.
        """
        check_kind("text", text, str, "text, e.g. 'baseline',")
        labelled = object.__new__(PrivacyLedger)
        labelled.__dict__.update(self.__dict__, _label=text)
        return labelled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivacyLedger) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    # --- shown ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        relation = "" if self.neighboring is None else f", neighboring={self.neighboring!r}"
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"PrivacyLedger({self.path!r}, {budget}{relation})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.spent()}"

    def _repr_html_(self) -> str:
        return self.spent()._repr_html_()


def _trained_clone(
    adapter: Adapter, model: Any, records: Records, params: Mapping[str, Any]
) -> Any:
    """Train a clone of a model as its adapter promises."""
    trained = clone(model)
    adapter.for_records(trained, records.n)
    seeds = dict.fromkeys(seed_names(trained))
    trained.set_params(**{**seeds, **adapter.fresh_randomness(trained)})
    adapter.prepare(trained)
    trained.fit(records.X, *([] if records.y is None else [records.y]), **params)
    adapter.finish(trained)
    adapter.scrub(trained)
    forget_seeds(trained)
    return trained
