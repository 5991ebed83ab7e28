"""Mistakes in the ledger: what is entered, when, and what is made of it."""

from .mutant import Mutant

PAGES, LEDGER, SEARCHES = "ledger/test_ledger_file.py", "ledger/test_privacy_ledger.py", "search/test_ledger.py"

MUTANTS = {
    "entry not on the disk": Mutant(
        mistake="A fit goes on while its entry waits in memory to be written.",
        file="ledger/ledger_file.py",
        old="        rest = rest[os.write(descriptor, rest) :]\n    os.fsync(descriptor)\n",
        new="        rest = rest[os.write(descriptor, rest) :]\n",
        tests=(f"{PAGES}::test_what_is_used_is_on_the_disk_before",),
    ),
    "a lock for each process": Mutant(
        mistake="Two processes write into a ledger at once, and one takes the place of the other's entry.",
        file="ledger/ledger_file.py",
        old='filelock.FileLock(f"{path}{LOCK}", timeout=PATIENCE)',
        new='filelock.FileLock(f"{path}{LOCK}{os.getpid()}", timeout=PATIENCE)',
        tests=(f"{PAGES}::test_two_processes_that_enter_at_once_lose_nothing",),
    ),
    "damage passed over": Mutant(
        mistake="A damaged line in the middle of a ledger is skipped.",
        file="ledger/ledger_file.py",
        old="            raise _damaged_error(path, number)\n        if body is not None:",
        new="            continue\n        if body is not None:",
        tests=(PAGES,),
    ),
    "behind what was never finished": Mutant(
        mistake="An entry is written behind the rest of one that was cut off, and neither can be read.",
        file="ledger/ledger_file.py",
        old="    end = len(found) if open_end else len(found) - len(tail)\n",
        new="    end = len(found)\n",
        tests=(PAGES,),
    ),
    "the last fit is free": Mutant(
        mistake="Whether a fit fits into the budget is asked of the entries before it.",
        file="ledger/privacy_ledger.py",
        old="total = total_epsilon(both, relation, self.delta)",
        new="total = total_epsilon(entries, relation, self.delta)",
        tests=(LEDGER,),
    ),
    "checked before the lock": Mutant(
        mistake="Two processes both find that the last of the budget is left, and both spend it.",
        file="ledger/privacy_ledger.py",
        old="        with ledger_file.locked(self._file):\n            found = self._pages()\n",
        new="        found = self._pages()\n        with ledger_file.locked(self._file):\n",
        tests=(PAGES,),
    ),
    "folds composed in parallel": Mutant(
        mistake="Fits on folds, which share records, are counted as the worst of them.",
        file="ledger/entry.py",
        old="    return compose(*(stated_under(entry.guarantee, relation) for entry in entries))\n",
        new="    return max((one.guarantee for one in entries), key=lambda one: one.epsilon_at(1e-6))\n",
        tests=(SEARCHES, LEDGER),
    ),
    "single models for nothing": Mutant(
        mistake="Only searches are entered: a model that is fitted alone in a block leaves the budget as it was.",
        file="ledger/fits.py",
        old="    if ledger is not None:\n        ledger._spend_fit",
        new="    if ledger is None:\n        ledger._spend_fit",
        tests=("ledger/test_single_fits.py",),
    ),
    "runs in the ledger": Mutant(
        mistake="Searches inside of a search are entered one by one: their number tells K.",
        file="ledger/ledger_context.py",
        old="return _COUNTED.get() or is_private()",
        new="return _COUNTED.get()",
        tests=(f"{SEARCHES}::test_the_entry_of_a_search_is_for_the_searches_inside_of_it_too",),
    ),
    "blocks end at the process": Mutant(
        mistake="What worker processes fit inside of a ledger's block is not entered.",
        file="search/_ledgers.py",
        old='    if state.get("ledger") is None and (ledger := ledger_here()) is not None:\n',
        new='    if state.get("ledger") is not None and (ledger := ledger_here()) is not None:\n',
        tests=(SEARCHES,),
    ),
    "the time of day": Mutant(
        mistake="Entries have the time of day: that of the next one tells how long a fit took.",
        file="ledger/entry.py",
        old="    return datetime.now(UTC).date().isoformat()\n",
        new="    return datetime.now(UTC).isoformat()\n",
        tests=(f"{PAGES}::test_no_time_of_day_is_in_the_file",),
    ),
    "a cut-off entry forgotten": Mutant(
        mistake="A ledger that is open does not notice that its own last entry is no longer in the file.",
        file="ledger/privacy_ledger.py",
        old="            self._seen[0] = len(found.bodies), found.digest\n",
        new="            pass\n",
        tests=(f"{PAGES}::test_an_open_ledger_notices_that_entries_it_has_seen_were_cut_off",),
    ),
    "what was computed read as written": Mutant(
        mistake="The ε of a search is taken for the decimal number next to it, which may be smaller.",
        file="ledger/entry.py",
        old="        return self.name == BY_HAND and not self.assumptions and",
        new="        return",
        tests=(f"{LEDGER}::test_what_was_computed_counts_as_the_double_that_it_is",),
    ),
    "a record in a ledger of persons": Mutant(
        mistake="What is guaranteed for one record is added to what is guaranteed for a person with any number.",
        file="ledger/entry.py",
        old='    if unit == PERSON and entry.unit == "record":',
        new='    if unit == PERSON and entry.unit == "nothing":',
        tests=("ledger/test_privacy_ledger.py::test_a_ledger_of_persons_refuses_what_is_said_of_a_record",),
    ),
    "a blanked person covers a blanked record": Mutant(
        mistake="Blanking all records of a person counts as a bound for blanking one of them.",
        file="ledger/entry.py",
        old='    return replace(entry, guarantee=stated_under(entry.guarantee, "replace_one"))',
        new="    return entry",
        tests=("ledger/test_privacy_ledger.py::test_in_a_ledger_of_records_a_person_counts_as_a_replaced_record",),
    ),
    "all records of a person in a report": Mutant(
        mistake="A report for persons counts every record, and pays for one of each.",
        file="report/schema_fit.py",
        old="counted = slice(None) if groups is None else one_of_each(persons, secrets.token_bytes)",
        new="counted = slice(None)",
        tests=("report/test_schema_fit.py::test_one_record_of_each_person_is_counted",),
    ),
}
