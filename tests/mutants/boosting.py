"""Mistakes in boosting on public partitions."""

from .mutant import Mutant

MUTANTS = {
    "a record of any length": Mutant(
        mistake="A target that is no number becomes the largest whole number, and is added.",
        file="boosting/_noise.py",
        old="if not fits.all():",
        new="if False:",
        test="boosting/test_noise.py::test_what_a_record_may_not_add_counts_as_nothing",
    ),
    "the start for free": Mutant(
        mistake="The constant that boosting starts from is released, and only rounds are paid for.",
        file="boosting/_base.py",
        old="return Fraction((n_rounds + steps) * capacity.START, capacity.START - starts)",
        new="return Fraction(n_rounds)",
        test="boosting/test_estimators.py::test_the_guarantee_is_the_target_and_the_noise_reaches_it",
    ),
    "rounds by the number of records": Mutant(
        mistake="Rounds and cells follow from the number of records, which may be private.",
        file="boosting/_base.py",
        old=(
            "information, size = self._mu() * float(start.total.mean()), self._mu() * "
            "start.n_records"
        ),
        new="information, size = self._mu() * records.n_units / 2, self._mu() * records.n_units",
        test="boosting/test_capacity.py::test_what_can_be_learned_is_counted_by_the_rarer_class",
    ),
    "a round more than is paid for": Mutant(
        mistake="The rounds are drawn once more than the noise was calibrated for.",
        file="boosting/_base.py",
        old="coded.features, n_rounds, groups",
        new="coded.features, n_rounds + 1, groups",
        test="boosting/test_estimators.py::test_the_guarantee_is_the_target_and_the_noise_reaches_it",
    ),
    "noise of boosting used twice": Mutant(
        mistake="Noise that is drawn ahead is not taken away from what is left.",
        file="boosting/_noise.py",
        old="noise, self._ahead = self._ahead[:size], self._ahead[size:]",
        new="noise, self._ahead = self._ahead[:size], self._ahead",
        test="boosting/test_noise.py::test_released_sums_have_the_stated_noise_and_their_own_units",
    ),
    "a record in two cells": Mutant(
        mistake="Each record is also counted in the first cell of a round.",
        file="boosting/_noise.py",
        old="        np.add.at(sums.reshape(-1), places, row)",
        new="        np.add.at(sums.reshape(-1), places, row)\n        sums[0, 0] += row.sum()",
        test="boosting/test_rounds.py::test_a_record_moves_no_released_sum_by_more_than_is_paid_for",
    ),
    "a start by the records there are": Mutant(
        mistake="In a random subset, boosting's start follows from the secret number of records.",
        file="boosting/_base.py",
        old='is_secret = self.expected_samples is not None or self.neighboring == "add_remove"',
        new='is_secret = self.neighboring == "add_remove"',
        test="audit/test_replay.py::test_only_a_model_that_is_told_an_expected_number_does_not_count_its_records",
    ),
    "a start along directions for free": Mutant(
        mistake="The releases that find the size of the start along directions are not paid for.",
        file="boosting/_base.py",
        old="            starts += directions.RELEASES\n",
        new="            pass\n",
        test="boosting/test_directions.py::test_the_start_and_all_rounds_are_paid_for",
    ),
    "sums that run over": Mutant(
        mistake="A number holds so many records that their Hessians reach the sum of scores.",
        file="boosting/_noise.py",
        old="BITS, PART = 30, 2**12 - 1",
        new="BITS, PART = 30, 2**13",
        test="boosting/test_noise.py::test_sums_in_one_number_are_exact_where_every_record_adds_the_most",
    ),
    "threads that share too little": Mutant(
        mistake="Each thread leaves out its first block of records.",
        file="boosting/_rounds.py",
        old="itertools.islice(self._blocks(n_cells), first, None, step)",
        new="itertools.islice(self._blocks(n_cells), first + (step > 1), None, step)",
        test="boosting/test_estimators.py::test_weights_are_the_same_bits_for_any_number_of_threads",
    ),
    "exponentials of the processor": Mutant(
        mistake="exp is computed for an array: its last digit may depend on the records before.",
        file="boosting/_losses.py",
        old="np.asarray(EXPONENTIALS[places])",
        new="np.exp(-values)",
        test="boosting/test_losses.py::test_exponentials_are_looked_up_within_half_a_step_of_the_table",
    ),
    "noise of boosting rounded down": Mutant(
        mistake="The standard deviation is the largest whole number below the one needed.",
        file="boosting/_noise.py",
        old="math.isqrt(math.ceil(square) - 1) + 1",
        new="math.isqrt(math.ceil(square))",
        test="boosting/test_noise.py",
    ),
    "a person's records one by one": Mutant(
        mistake="Each record is bounded, and a person adds all of them.",
        file="boosting/_rounds.py",
        old="return _noise.cell_sums(clipped, cells, n_cells)",
        new="return _noise.cell_sums(_noise.unpacked(added), cells, n_cells)",
        test="boosting/test_persons.py::test_a_person_moves_no_released_sum_by_more_than_is_paid_for",
    ),
    "a person's cells apart": Mutant(
        mistake="What a person adds is clipped in each cell, and he has records in many.",
        file="boosting/_rounds.py",
        old="_shorten_persons(sums, persons, int(",
        new="_shorten_persons(sums, np.arange(len(pairs)), int(",
        test="boosting/test_persons.py::test_no_person_adds_more_than_one_record_may",
    ),
    "a step that is added twice": Mutant(
        mistake="A worker that is asked again, as its answer was lost, adds its step once more.",
        file="boosting/_partitions.py",
        old="calls[self.done - first :]",
        new="calls",
        test="boosting/test_partitions.py::test_a_call_that_comes_twice_is_made_once",
    ),
    "a person in two partitions": Mutant(
        mistake="Each partition clips a person's sum, whatever the person adds in another.",
        file="boosting/_rounds.py",
        old="persons[places != self.place]",
        new="persons[:0]",
        test="boosting/test_partitions.py::test_a_person_counts_in_the_first_of_several_partitions",
    ),
}
