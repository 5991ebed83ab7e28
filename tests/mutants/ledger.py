"""Mistakes in the ledger: what is entered, when, and what is made of it."""

from .mutant import Mutant

PAGES = "ledger/test_ledger_file.py"
LEDGER = "ledger/test_privacy_ledger.py"
SEARCHES = "search/test_ledger.py"

MUTANTS = {
    "entry not on the disk": Mutant(
        mistake="A fit goes on while its entry waits in memory to be written.",
        file="ledger/_ledger_file.py",
        old="os.write(descriptor, unwritten) :]\n    os.fsync(descriptor)\n",
        new="os.write(descriptor, unwritten) :]\n",
        test=f"{PAGES}::test_what_is_used_is_on_the_disk_before",
    ),
    "damage passed over": Mutant(
        mistake="A damaged line in the middle of a ledger is skipped.",
        file="ledger/_ledger_file.py",
        old="            raise _damaged_error(path, number)\n        if body is not None:",
        new="            continue\n        if body is not None:",
        test=PAGES,
    ),
    "behind what was never finished": Mutant(
        mistake="An entry is written behind one that was cut off, and neither can be read.",
        file="ledger/_ledger_file.py",
        old="    end = len(content) if open_end else len(content) - len(tail)\n",
        new="    end = len(content)\n",
        test=PAGES,
    ),
    "the last fit is free": Mutant(
        mistake="Whether a fit fits into the budget is asked of the entries before it.",
        file="ledger/_privacy_ledger.py",
        old="total = _entry.total_epsilon(together, relation, self.delta)",
        new="total = _entry.total_epsilon(entries, relation, self.delta)",
        test=LEDGER,
    ),
    "checked before the lock": Mutant(
        mistake="Two processes both find that the last of the budget is left, and both spend it.",
        file="ledger/_privacy_ledger.py",
        old="        with ledger_file.locked(self._file):\n            pages = self._pages()\n",
        new="        pages = self._pages()\n        with ledger_file.locked(self._file):\n",
        test=f"{PAGES}::test_what_others_enter_while_a_ledger_waits_for_the_lock_counts",
    ),
    "folds composed in parallel": Mutant(
        mistake="Fits on folds, which share records, are counted as the worst of them.",
        file="ledger/_entry.py",
        old="    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))\n",
        new=(
            "    return max((one.guarantee for one in entries), key=lambda one: "
            "one.epsilon_at(1e-6))\n"
        ),
        test=LEDGER,
    ),
    "single models for nothing": Mutant(
        mistake="Only searches are entered: a model that is fitted alone costs no budget.",
        file="ledger/_ledger_context.py",
        old="    if (ledger := ledger_of_fit(model)) is not None:\n",
        new="    if (ledger := ledger_of_fit(model)) is None:\n",
        test="ledger/test_single_fits.py",
    ),
    "entered as planned, trained as it likes": Mutant(
        mistake="What a model of another library did in its fit is not compared with its entry.",
        file="ledger/_privacy_ledger.py",
        old="    adapter.finish(trained)\n    adapter.scrub(trained)\n",
        new="    del adapter\n",
        test="adapters/test_opacus.py",
    ),
    "blocks end at the process": Mutant(
        mistake="What worker processes fit inside of a ledger's block is not entered.",
        file="search/_base.py",
        old='if state.get("ledger") is None and ',
        new='if state.get("ledger") is not None and ',
        test=SEARCHES,
    ),
}
