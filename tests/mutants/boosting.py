"""Mistakes in boosting on public partitions."""

from .mutant import Mutant

MUTANTS = {
    "a record of any length": Mutant(
        mistake="What a record adds is not looked at: a target that is no number becomes the largest whole one.",
        file="boosting/noise.py",
        old="if not fits.all():",
        new="if False:",
        tests=("boosting/test_noise.py::test_what_a_record_may_not_add_counts_as_nothing",),
    ),
    "the start for free": Mutant(
        mistake="The constant that boosting starts from is released, and the rounds alone are paid for.",
        file="boosting/base.py",
        old="return Fraction((rounds + steps) * capacity.START, capacity.START - starts)",
        new="return Fraction(rounds)",
        tests=("boosting/test_estimators.py::test_the_guarantee_is_the_target_and_the_noise_reaches_it",),
    ),
    "rounds by the number of records": Mutant(
        mistake="The number of rounds and the cells follow from the number of records, which may be private.",
        file="boosting/base.py",
        old="information, size = self._mu() * float(start.total.mean()), self._mu() * start.n_records",
        new="information, size = self._mu() * codes.shape[1] / 2, self._mu() * codes.shape[1]",
        tests=("boosting/test_capacity.py::test_what_can_be_learned_is_counted_by_the_rarer_class",),
    ),
    "a round more than is paid for": Mutant(
        mistake="The rounds are drawn once more than the noise was calibrated for.",
        file="boosting/base.py",
        old="draws = PartitionDraws(features, rounds,",
        new="draws = PartitionDraws(features, rounds + 1,",
        tests=("boosting/test_estimators.py::test_the_guarantee_is_the_target_and_the_noise_reaches_it",),
    ),
    "noise of boosting used twice": Mutant(
        mistake="Noise that is drawn ahead is not taken away from what is left.",
        file="boosting/noise.py",
        old="found, self._ahead = self._ahead[:size], self._ahead[size:]",
        new="found, self._ahead = self._ahead[:size], self._ahead",
        tests=("boosting/test_noise.py::test_released_sums_have_the_stated_noise_and_their_own_units",),
    ),
    "a record in two cells": Mutant(
        mistake="Each record is also counted in the first cell of a round.",
        file="boosting/noise.py",
        old="[np.bincount(places, row, n_cells) for row in values]",
        new="[np.bincount(places, row, n_cells) + np.bincount(0 * places, row, n_cells) for row in values]",
        tests=("boosting/test_rounds.py::test_a_record_moves_no_released_sum_by_more_than_is_paid_for",),
    ),
    "exponentials of the processor": Mutant(
        mistake="exp is computed for an array, where its last digit may depend on how many records come before.",
        file="boosting/losses.py",
        old="    found: Array = EXPONENTIALS[places]",
        new="    found: Array = np.exp(-values)",
        tests=("boosting/test_losses.py::test_exponentials_are_looked_up_within_half_a_step_of_the_table",),
    ),
    "noise of boosting rounded down": Mutant(
        mistake="The standard deviation is the largest whole number below the one needed.",
        file="boosting/noise.py",
        old="math.isqrt(math.ceil(square) - 1) + 1",
        new="math.isqrt(math.ceil(square))",
        tests=("boosting/test_noise.py",),
    ),
    "a person's records one by one": Mutant(
        mistake="Each record is bounded, and a person adds all of them.",
        file="boosting/rounds.py",
        old="            added = clip_persons(added, cells, n_cells, persons, self.loss)\n",
        new="            clip_persons(added, cells, n_cells, persons, self.loss)\n",
        tests=("boosting/test_persons.py::test_a_person_moves_no_released_sum_by_more_than_is_paid_for",),
    ),
    "a person's cells apart": Mutant(
        mistake="What a person adds is clipped in each cell, and he has records in many.",
        file="boosting/rounds.py",
        old="    cell_sums(values, places.take(pairs), len(pairs)), persons, ",
        new="    cell_sums(values, places.take(pairs), len(pairs)), np.arange(len(pairs)), ",
        tests=("boosting/test_persons.py::test_no_person_adds_more_than_one_record_may",),
    ),
    "a step that is added twice": Mutant(
        mistake="A worker that is asked again, because its answer was lost, adds the step to its outputs once more.",
        file="boosting/partitions.py",
        old="calls[self.done - first :]",
        new="calls",
        tests=("boosting/test_partitions.py::test_a_call_that_comes_twice_is_made_once",),
    ),
    "a person in two partitions": Mutant(
        mistake="Each partition clips what a person adds, and records in another one are not looked for.",
        file="boosting/partitions.py",
        old="if len(np.unique(persons)) < len(persons):",
        new="if False:",
        tests=("boosting/test_partitions.py::test_a_person_in_two_partitions_is_refused",),
    ),
}
