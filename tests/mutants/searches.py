"""Mistakes in scoring, estimators and searches: what runs, what is charged, and what comes out."""

from .mutant import Mutant

#: Tests of the walls around a private process.
WALLS = "search/test_walls.py"

MUTANTS = {
    "types by the values": Mutant(
        mistake="pandas chooses a column's type: a missing value makes doubles of whole numbers.",
        file="data/_columns.py",
        old='if kind in NUMBERS and not (exact and kind != "f"):',
        new="if kind in NUMBERS:",
        test="data/test_columns.py::test_listed_whole_numbers_are_not_rounded",
    ),
    "a door for whatever looks like an array": Mutant(
        mistake="An object with __array__ is an array: its value of a record may depend on others.",
        file="data/_records.py",
        old="    if library is None:\n        raise TypeError",
        new=(
            "    if library is None:\n        return np.asarray(X)\n    if library is None:\n      "
            "  raise TypeError"
        ),
        test="search/test_large_data.py::test_what_only_looks_like_an_array_is_refused_before_anything_is_spent",
    ),
    "one entry asked for its length": Mutant(
        mistake="NumPy fills an array of objects, and asks entries for their length and array.",
        file="data/_lists.py",
        old="    return np.fromiter(values, dtype=object, count=len(values))\n",
        new=(
            "    array = np.empty(len(values), dtype=object)\n    array[:] = values\n    return "
            "array\n"
        ),
        test="data/test_door.py",
    ),
    "errors of other code as they are": Mutant(
        mistake="An error of a library in a training is shown, with the record that it quotes.",
        file="_process/containment.py",
        old="    if _PUBLIC_RECORDS.get():\n        return work()\n",
        new="    if True:\n        return work()\n",
        test="data/test_direct_fits.py",
    ),
    "candidates that write": Mutant(
        mistake="Private processes are not confined: candidates write as many files as they are.",
        file="search/_serving.py",
        old="        if ROLE.forks and self.writes is not None:\n",
        new="        if False:\n",
        test="search/test_sandbox.py",
    ),
    # --- how many runs, and which -----------------------------------------------------------------
    "K capped by the search": Mutant(
        mistake="A search runs no more than 20 candidates whatever it drew.",
        file="search/_strategy.py",
        old="drawn_candidates(plan, plan.distribution.sample(source.bits), source)",
        new="drawn_candidates(plan, min(20, plan.distribution.sample(source.bits)), source)",
        test="search/test_runs.py::test_as_many_candidates_run_as_the_distribution_drew",
    ),
    "the report of one column": Mutant(
        mistake="A report on all columns is charged as if a record were in one column's histogram.",
        file="report/_schema_fit.py",
        old='moved = (2 if neighboring == "replace_one" else 1) * columns',
        new='moved = 2 if neighboring == "replace_one" else 1',
        test="report/test_schema_fit.py::test_the_noise_keeps_the_price_for_all_columns_together",
    ),
    # --- a process of its own ---------------------------------------------------------------------
    "forks draw the same": Mutant(
        mistake="Generators that modules and objects hold have the same state in each run.",
        file="search/_serving.py",
        old="        refresh(generator)\n",
        new="        pass\n",
        test="search/test_private_process.py::test_each_process_draws_noise_of_its_own",
    ),
    "code that comes back by value": Mutant(
        mistake="Results bring a script's classes back as a run left them, with counts and memos.",
        file="search/_pickling.py",
        old="            return None if number is None or self._notes else ~number\n",
        new="            return None\n",
        test="search/test_code_by_name.py::test_no_run_changes_the_users_code_or_that_of_another_run",
    ),
    "shared memory that tells": Mutant(
        mistake="Runs see what others have left in shared memory.",
        file="_namespaces.py",
        old="    elif os.path.isdir(SHARED_MEMORY) and not _mount",
        new="    elif False and not _mount",
        test=f"{WALLS}::test_a_run_sees_nothing_of_others_and_what_it_starts_ends_with_it",
    ),
    "sockets with a path": Mutant(
        mistake="A candidate's messages reach the system's log and others that listen at a path.",
        file="search/_sandbox.py",
        old="        (EQUAL, 0, 3, UNIX),\n",
        new="        (EQUAL, 0, 3, UNIX + 1),\n",
        test=f"{WALLS}::test_no_socket_with_a_path_is_reached",
    ),
    "paid before it could start": Mutant(
        mistake="A fit is paid for before its private process has started and read its task.",
        file="search/_base.py",
        old="                plan = work.plan.assuming(*process.start())\n",
        new="                plan = work.plan\n",
        test=f"{WALLS}::test_what_keeps_a_private_process_from_starting_costs_nothing",
    ),
    # --- before anything is spent -----------------------------------------------------------------
    "rehearsed on private records": Mutant(
        mistake="A rehearsal, whose errors are shown in full, is given the private records.",
        file="data/_records.py",
        old="    return values[:0] if plain else None",
        new="    return values",
        test="search/test_rehearsal.py::test_only_names_shapes_and_types_are_read",
    ),
    "only a rehearsal": Mutant(
        mistake="Trainings take the few steps of a rehearsal when it is over.",
        file="_process/containment.py",
        old="min(planned, REHEARSAL_STEPS) if _REHEARSAL.get() else planned",
        new="min(planned, REHEARSAL_STEPS)",
        test="search/test_rehearsal.py::test_rehearse_false_trains_on_private_records_alone",
    ),
    # --- randomness -------------------------------------------------------------------------------
    "shared seeds": Mutant(
        mistake="All candidates of a search draw the same noise.",
        file="search/_execution/randomness.py",
        old="np.random.SeedSequence(secrets.randbits(256)) if seed is None else seed",
        new="np.random.SeedSequence(0) if seed is None else seed",
        test="search/test_runs.py::test_every_run_has_noise_of_its_own",
    ),
    # --- scores -----------------------------------------------------------------------------------
    "unnoised score": Mutant(
        mistake="Candidates are compared by the exact score on private records.",
        file="search/_execution/runs.py",
        old="value + noise.sample(bits) for value in",
        new="value for value in",
        test="search/test_runs.py::test_every_score_has_noise_and_none_is_drawn_twice",
    ),
    "half the noise on a score": Mutant(
        mistake="Noise of a score is made for half its sensitivity.",
        file="scoring/_noise_matching.py",
        old="return DiscreteLaplaceNoise(sensitivity.l1 / Fraction(float(epsilon)))",
        new="return DiscreteLaplaceNoise(sensitivity.l1 / (2 * Fraction(float(epsilon))))",
        test="scoring/test_noise_matching.py::test_noise_matched_to_a_pure_training_has_exactly_its_epsilon",
    ),
    "values that are not clipped": Mutant(
        mistake="Values beyond the stated bounds enter a mean as they are.",
        file="scoring/_contributions.py",
        old="    return np.clip(np.rint(share * resolution), 0, resolution).astype(np.int64)",
        new="    return np.rint((values - lower) / (upper - lower) * resolution).astype(np.int64)",
        test="scoring/test_scorers.py::test_values_beyond_the_bounds_are_clipped",
    ),
    # --- who trains and who validates -------------------------------------------------------------
    "folds not composed": Mutant(
        mistake="With k folds a record trains k − 1 models and is charged for one.",
        file="scoring/_validation.py",
        old="return (Exposure(self.n_folds - 1, 1),)",
        new="return (Exposure(1, 1),)",
        test="scoring/test_validation.py::test_exposures_of_the_standard_splits",
    ),
    "validation records also train": Mutant(
        mistake="Models train on validation records too, and their scores are called held out.",
        file="scoring/_validation.py",
        old="return [(numbers_where(~validates), numbers_where(validates))]",
        new="return [(all_numbers(n_samples), numbers_where(validates))]",
        test="scoring/test_validation.py::test_each_record_validates_with_the_stated_probability_and_never_does_both",
    ),
    # --- what is charged --------------------------------------------------------------------------
    "parts of the release not composed": Mutant(
        mistake="A release of several parts is charged for the first of them.",
        file="search/_planning/plan.py",
        old="return compose(*(component.guarantee for component in components))",
        new="return components[0].guarantee",
        test="search/test_grid_search.py::test_the_total_is_that_of_a_noisy_maximum_and_one_training",
    ),
    "average candidate": Mutant(
        mistake="ε drawn from a distribution is charged by its mean, not by its upper end.",
        file="search/_planning/space_guarantee.py",
        old="        upper = values.support()[1]\n",
        new="        upper = values.mean()\n",
        test="search/test_runs.py::test_the_upper_end_of_a_distribution_of_epsilon_is_charged",
    ),
    # --- a subset, parts, thresholds --------------------------------------------------------------
    "subset used twice": Mutant(
        mistake="The final model trains on all records and is charged for the rest.",
        file="search/_subset_search.py",
        old='numbers_where(~joins) if self.search.train_on == "rest" else all_numbers(n_samples)',
        new="all_numbers(n_samples)",
        test="search/test_subset_search.py::test_all_candidates_share_one_subset_and_the_final_model_sees_the_rest",
    ),
    "scores on the rest for nothing": Mutant(
        mistake="Records of the rest are scored, and charged for the final training alone.",
        file="search/_random_subset.py",
        old='{"validate": search(scoring)._roughly(), "validated_share": members.share}',
        new="{}",
        test="search/test_subset_validated.py::test_the_total_is_that_of_theorem_four",
    ),
    "steps fitted on private records": Mutant(
        mistake="An encoder keeps a private column's type, which one missing value changes.",
        file="adapters/_pipelines.py",
        old="        fit_by_parameters(model)\n",
        new="",
        test="adapters/test_sklearn_steps.py",
    ),
    "a table encoder that learns": Mutant(
        mistake="A subclass of the table encoder, which may learn ranges, seems to learn nothing.",
        file="adapters/_sklearn_steps.py",
        old="    return STATELESS_STEPS.get((type(part).__module__",
        new="    for kind in type(part).__mro__:\n"
        '        name = (kind.__module__.partition(".")[0], kind.__name__)\n'
        "        if name in STATELESS_STEPS:\n            return STATELESS_STEPS[name]\n"
        "    return STATELESS_STEPS.get((type(part).__module__",
        test="search/test_tables.py::test_a_step_that_may_learn_is_refused_and_pointed_to_the_schema",
    ),
    "classes from the records": Mutant(
        mistake="Classes are the labels that occur, although the schema states them.",
        file="data/_labels.py",
        old="np.unique(labels) if declared is None else sorted_classes(declared)",
        new="np.unique(y)",
        test="nets/estimators/test_frame_estimators.py::test_classes_that_no_record_has_are_those_of_the_schema",
    ),
    "bins by quantiles": Mutant(
        mistake="Edges of the bins are quantiles of the records, without noise.",
        file="preprocessing/_ranges.py",
        old='np.searchsorted(self.warp(edges), warped, side="right")',
        new="np.searchsorted(np.quantile(warped, np.linspace(0, 1, len(edges))), warped)",
        test="nets/estimators/test_frame_estimators.py::test_a_record_is_encoded_as_if_it_were_alone",
    ),
    "band of one output": Mutant(
        mistake="The noise in log odds is that of one output, not of the difference of two.",
        file="nets/_estimators/frame_estimators.py",
        old="np.linalg.norm(contrasts, axis=1, keepdims=True)",
        new="np.ones((len(contrasts), 1))",
        test="nets/estimators/test_frame_estimators.py::test_shapes_of_an_additive_classifier_are_its_log_odds",
    ),
    # --- what comes out ---------------------------------------------------------------------------
    "error text quoted": Mutant(
        mistake="An error of a worker is shown with what it says.",
        file="search/_execution/workers.py",
        old="        problem = error_in_fixed_words(error)\n",
        new='        problem = RuntimeError(f"Candidates failed: {error} {error.__cause__}")\n',
        test="search/test_failures.py::test_every_search_says_so",
    ),
    "error raised by one candidate": Mutant(
        mistake="error_score='raise' is accepted: which candidate fails tells about its data.",
        file="search/_planning/checks.py",
        old="    if isinstance(search.error_score, str):\n",
        new="    if False:\n",
        test="search/test_arguments.py::test_it_is_refused_before_any_record_is_read",
    ),
    "released model states one run's ε": Mutant(
        mistake="The winner says what its own training cost, not what choosing it did.",
        file="search/_execution/job.py",
        old="        model.privacy_spent_ = spent\n",
        new="        pass\n",
        test="search/test_nets.py::test_the_released_net_states_what_the_search_cost_not_its_own_training",
    ),
    "spent only if it ends well": Mutant(
        mistake="After a crash nothing says that the budget was spent, nor has a ledger an entry.",
        file="search/_base.py",
        old=(
            "                start.begin(lambda: self._spend(plan, ledger, start.entry))\n"
            "                release = process(tell=tell)\n"
        ),
        new=(
            "                release = process(tell=tell)\n"
            "                start.begin(lambda: self._spend(plan, ledger, start.entry))\n"
        ),
        test="search/test_nothing_leaks.py::test_an_interrupt_of_the_caller_passes_and_leaves_what_was_spent",
    ),
    # --- estimators -------------------------------------------------------------------------------
    "what an adapter demands": Mutant(
        mistake="Candidates lack what the adapter demands: convergence, generators, a ledger.",
        file="search/_execution/models.py",
        old="    secure = job.adapter.fresh_randomness(model)\n",
        new="    secure = {}\n",
        test="adapters/test_diffprivlib.py::test_candidates_reach_the_minimum_whatever_the_tolerance_given",
    ),
    "rows longer than the norm covers": Mutant(
        mistake="Logistic regression is accepted with any data_norm.",
        file="adapters/_diffprivlib.py",
        old="    if not 0 < model.data_norm <= 2:\n",
        new="    if not 0 < model.data_norm:\n",
        test="adapters/test_diffprivlib.py::test_a_leak_is_refused_before_any_data_is_read",
    ),
    "private steps not composed": Mutant(
        mistake="A pipeline is charged for its most expensive step.",
        file="adapters/_pipelines.py",
        old="return TrainingRun(guarantee=compose(*private), assumptions=assumptions)",
        new=(
            "return TrainingRun(guarantee=max(private, key=lambda one: one.epsilon_at(1e-6)), "
            "assumptions=assumptions)"
        ),
        test="adapters/test_pipelines.py::test_private_steps_compose",
    ),
    "steps that learn": Mutant(
        mistake="A step that learns from the data without privacy seems to learn nothing.",
        file="adapters/_pipelines.py",
        old="if learns_nothing(part):\n            refuse_unknown",
        new='if learns_nothing(part) or "Scaler" in str(part):\n            refuse_unknown',
        test="adapters/test_pipelines.py::test_a_step_that_learns_without_privacy_is_named_with_a_remedy",
    ),
    "subclass vouched for": Mutant(
        mistake="A user's subclass, whose fit may be anything, is taken for its parent.",
        file="adapters/_adapter.py",
        old=" and (is_ours(kind) or not is_ours(owner))",
        new="",
        test="search/test_nets.py::test_a_subclass_of_a_net_does_not_inherit_the_promise",
    ),
    "several votes of a person": Mutant(
        mistake="All records of a person who validates are scored, and one of them is paid for.",
        file="search/_private_fit.py",
        old="(records_of(train), records_of(test, representatives))",
        new="(records_of(train), records_of(test))",
        test="search/test_persons.py::test_the_record_that_votes_is_drawn_anew",
    ),
    "a coin for each record": Mutant(
        mistake="A person's records fall on both sides: some train, and others validate.",
        file="search/_private_fit.py",
        old="        records: Indices = among[numbers_where(is_chosen[persons[among]])]",
        new=(
            "        records: Indices = among[numbers_where(is_chosen[np.arange(len(among)) % "
            "len(is_chosen)])]"
        ),
        test="search/test_persons.py::test_a_person_is_on_one_side_and_has_one_vote",
    ),
    "one noise for two tables": Mutant(
        mistake="A search that goes on after a crash takes other records, and its first noise.",
        file="search/_checkpoint.py",
        old="for name, value in records.items()},",
        new="for name, value in ()},",
        test="search/test_checkpoint.py::test_another_search_is_refused_and_the_first_can_still_go_on",
    ),
    "a second draw after a crash": Mutant(
        mistake="A search that goes on draws anew: killing it until it draws well is a choice.",
        file="search/_checkpoint.py",
        old='self._header["entropy"] if self._begun else entropy_of(random_state)',
        new="entropy_of(random_state)",
        test="search/test_checkpoint.py::test_without_a_seed_it_is_the_same_as_well",
    ),
    "a folder that stays": Mutant(
        mistake="The secret of all noise stays on the disk after the release.",
        file="search/_checkpoint.py",
        old='"ended": _digests(self._fingerprint)})',
        new='"ended": _digests(self._fingerprint), "was": {"entropy": self.entropy}})',
        test="search/test_checkpoint.py::test_a_search_that_was_cut_off_releases_what_it_would_have_released",
    ),
}
