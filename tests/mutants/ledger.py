"""Mistakes in the ledger: what is entered, when, and what is made of it."""

from .mutant import Mutant

PAGES, LEDGER, SEARCHES = "ledger/test_ledger_file.py", "ledger/test_privacy_ledger.py", "search/test_ledger.py"

MUTANTS = [
    Mutant(
        name="entry not on the disk",
        mistake="A fit goes on while its entry waits in memory to be written.",
        file="ledger/ledger_file.py",
        old="        rest = rest[os.write(descriptor, rest) :]\n    os.fsync(descriptor)\n",
        new="        rest = rest[os.write(descriptor, rest) :]\n",
        tests=(f"{PAGES}::test_what_is_used_is_on_the_disk_before",),
    ),
    Mutant(
        name="a lock for each process",
        mistake="Two processes write into a ledger at once, and one takes the place of the other's entry.",
        file="ledger/ledger_file.py",
        old='filelock.FileLock(f"{path}{LOCK}", timeout=PATIENCE)',
        new='filelock.FileLock(f"{path}{LOCK}{os.getpid()}", timeout=PATIENCE)',
        tests=(f"{PAGES}::test_two_processes_that_enter_at_once_lose_nothing",),
    ),
    Mutant(
        name="damage passed over",
        mistake="A damaged line in the middle of a ledger is skipped.",
        file="ledger/ledger_file.py",
        old="            raise _damaged(path, number)\n        digest = _digest_in(line)\n",
        new="            continue\n        digest = _digest_in(line)\n",
        tests=(PAGES,),
    ),
    Mutant(
        name="behind what was never finished",
        mistake="An entry is written behind the rest of one that was cut off, and neither can be read.",
        file="ledger/ledger_file.py",
        old="    end = len(found) if last is not None else len(found) - len(tail)\n",
        new="    end = len(found)\n",
        tests=(PAGES,),
    ),
    Mutant(
        name="the last fit is free",
        mistake="Whether a fit fits into the budget is asked of the entries before it.",
        file="ledger/budget.py",
        old="total = epsilon_of(both, relation, ledger.delta)",
        new="total = epsilon_of(entries, relation, ledger.delta)",
        tests=(LEDGER,),
    ),
    Mutant(
        name="checked before the lock",
        mistake="Two processes both find that the last of the budget is left, and both spend it.",
        file="ledger/privacy_ledger.py",
        old="            if not self._holds(entry, tuple(map(read_entry, found.bodies))):\n",
        new="            if True:\n",
        tests=(PAGES,),
    ),
    Mutant(
        name="folds composed in parallel",
        mistake="Fits on folds, which share records, are counted as the worst of them.",
        file="ledger/budget.py",
        old="    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))\n",
        new="    return max((one.guarantee for one in entries), key=lambda one: one.epsilon_at(1e-6))\n",
        tests=(SEARCHES, LEDGER),
    ),
    Mutant(
        name="runs in the ledger",
        mistake="Searches inside of a search are entered one by one: their number tells K.",
        file="ledger/ledger_context.py",
        old="return _COUNTED.get() or is_private()",
        new="return _COUNTED.get()",
        tests=(f"{SEARCHES}::test_the_entry_of_a_search_is_for_the_searches_inside_of_it_too",),
    ),
    Mutant(
        name="blocks end at the process",
        mistake="What worker processes fit inside of a ledger's block is not entered.",
        file="search/_ledgers.py",
        old='    if state.get("ledger") is None and (ledger := ledger_here()) is not None:\n',
        new='    if state.get("ledger") is not None and (ledger := ledger_here()) is not None:\n',
        tests=(SEARCHES,),
    ),
    Mutant(
        name="the time of day",
        mistake="Entries have the time of day: that of the next one tells how long a fit took.",
        file="ledger/entry.py",
        old="    return datetime.now(UTC).date().isoformat()\n",
        new="    return datetime.now(UTC).isoformat()\n",
        tests=(f"{PAGES}::test_no_time_of_day_is_in_the_file",),
    ),
    Mutant(
        name="a cut-off entry forgotten",
        mistake="A ledger that is open does not notice that its own last entry is no longer in the file.",
        file="ledger/privacy_ledger.py",
        old="            self.last = len(found.bodies), found.digest\n",
        new="            pass\n",
        tests=(f"{PAGES}::test_an_open_ledger_notices_that_entries_it_has_seen_were_cut_off",),
    ),
    Mutant(
        name="what was computed read as written",
        mistake="The ε of a search is taken for the decimal number next to it, which may be smaller.",
        file="ledger/entry.py",
        old="        return self.name == BY_HAND and not self.assumptions and",
        new="        return",
        tests=(f"{LEDGER}::test_what_was_computed_counts_as_the_double_that_it_is",),
    ),
]
