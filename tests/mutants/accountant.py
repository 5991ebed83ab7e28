"""Mistakes in the accountant: what a search costs, distributions of K, noise."""

from .mutant import Mutant

MUTANTS = {
    "K above its cap": Mutant(
        mistake="K under a cap is numbered from the first probability that is not 0 in doubles.",
        file="privacy/count_distributions/base.py",
        old=(
            "        return self.distribution.lowest  # the first double that is not 0 may be far "
            "above it\n"
        ),
        new="        return int(np.flatnonzero(self._probabilities)[0])\n",
        tests=(
            "privacy/count_distributions/test_distributions.py::test_a_draw_is_the_quantile_that_its_bits_stand_for",
        ),
    ),
    "thirty-two bits of PyTorch": Mutant(
        mistake="PyTorch's generator on a CPU is seeded by manual_seed alone, which keeps 32 bits.",
        file="_process/random_generators.py",
        old="    if state.numel() == TORCH_STATE:\n",
        new="    if False:\n",
        tests=("nets/test_randomness.py::test_a_run_has_more_states_of_pytorch_than_can_be_tried",),
    ),
    "a blank record in one part only": Mutant(
        mistake="The relation of a composition is replaced, and that of its parts is not.",
        file="privacy/guarantees/neighboring_relations.py",
        old='if isinstance(value, tuple) and not hasattr(value, "_fields"):',
        new="if False:",
        tests=(
            "privacy/guarantees/test_blank_record.py::test_a_blank_record_costs_what_a_missing_one_does",
        ),
    ),
    "missing mass at infinity": Mutant(
        mistake=(
            "A privacy loss distribution is evaluated without the mass of outcomes that only one "
            "side has."
        ),
        file="privacy/numerics/loss_distribution.py",
        old="return np.minimum(self.infinity + finite, 1.0)",
        new="return np.minimum(finite, 1.0)",
        tests=(
            "privacy/numerics/test_loss_distribution.py::test_curve_of_a_discrete_pair_is_its_hockey_stick_divergence",
        ),
    ),
    "optimistic grid": Mutant(
        mistake="Privacy losses are rounded down to the grid before they are convolved.",
        file="privacy/numerics/loss_distribution.py",
        old="np.clip(np.expm1(-above) / np.expm1(-gap), 0.0, 1.0)",
        new="np.zeros_like(above)",
        tests=(
            "privacy/numerics/test_convolution.py::test_convolution_is_above_the_exact_composition_and_close",
        ),
    ),
    "tails cut off": Mutant(
        mistake="What a convolution cuts off in its tails is not counted.",
        file="privacy/numerics/convolution.py",
        old="_mass_at_infinity(parts, counts) + 2 * tail_mass)\n        losses",
        new="_mass_at_infinity(parts, counts))\n        losses",
        tests=(
            "privacy/numerics/test_convolution.py::test_what_lies_beyond_the_window_goes_to_infinity",
        ),
    ),
    "a grid finer than doubles": Mutant(
        mistake="Losses without spread are put on a grid whose indices no double can tell apart.",
        file="privacy/numerics/convolution.py",
        old="largest * FINEST, 1e-14)",
        new="1e-14)",
        tests=(
            "privacy/numerics/test_convolution.py::test_composed_randomised_responses_are_above_the_exact_curve_at_any_epsilon",
        ),
    ),
    "errors of a transform not counted": Mutant(
        mistake="What a fast Fourier transform may get wrong is not added to the masses.",
        file="privacy/numerics/grid_sums.py",
        old="np.maximum(around[index % around.size], 0.0) + error)",
        new="np.maximum(around[index % around.size], 0.0) + 0.0 * error)",
        tests=(
            "privacy/numerics/test_convolution.py::test_every_tilt_bounds_every_mass_whatever_goes_around_the_circle",
        ),
    ),
    "rare losses without their announcement": Mutant(
        mistake=(
            "Rare losses are added to the common part of all steps as they are, not relative to a "
            "common step."
        ),
        file="privacy/numerics/convolution.py",
        old="    return LossDistribution(losses, pld.masses[rare] / p)\n",
        new="    return LossDistribution(losses, pld.masses[rare])\n",
        tests=(
            "privacy/numerics/test_convolution.py::test_bound_is_above_the_exact_composition_and_close",
        ),
    ),
    "one rare loss at most": Mutant(
        mistake="Sums with two rare losses or more are left out.",
        file="privacy/numerics/convolution.py",
        old="special.expm1(exponent) * np.exp(-rate)\n",
        new="exponent * np.exp(-rate)\n",
        tests=(
            "privacy/numerics/test_convolution.py::test_what_the_transforms_get_wrong_is_below_the_allowance",
        ),
    ),
    "remainder of a long composition": Mutant(
        mistake=(
            "A long composition is taken for its whole groups of steps; the steps that are left "
            "are not counted."
        ),
        file="privacy/numerics/convolution.py",
        old="        if count % size:\n",
        new="        if False:\n",
        tests=(
            "privacy/numerics/test_convolution.py::test_compositions_of_compositions_are_above_the_exact_one",
        ),
    ),
    "epsilon rounded down": Mutant(
        mistake="A bisection for ε returns the end that does not meet δ.",
        file="privacy/guarantees/base.py",
        old="if log_ratio < 0), default=largest)",
        new="if log_ratio < 1e-7), default=largest)",
        tests=(
            "privacy/guarantees/test_single_mechanisms.py::test_delta_at_the_stated_epsilon_is_at_most_the_stated_delta",
        ),
    ),
    "budget exceeded by calibration": Mutant(
        mistake="Calibration returns the parameter that just misses the target.",
        file="privacy/calibration.py",
        old="safe_end = turn.fails if rising else turn.holds",
        new="safe_end = turn.holds if rising else turn.fails",
        tests=(
            "privacy/test_calibration.py::test_result_meets_the_target_and_is_within_the_tolerance",
        ),
    ),
    "average of the epsilons": Mutant(
        mistake=(
            "A search over candidates with different ε is charged as if none of them had more than "
            "the average."
        ),
        file="privacy/guarantees/composition.py",
        old='_if_all_pure(max)\n\n    def renyi(self, order: ArrayLike) -> Array:\n        """log',
        new='_if_all_pure(np.mean)\n\n    def renyi(self, order: ArrayLike) -> Array:\n        """log',
        tests=(
            "privacy/selection/test_pure_mixtures.py::test_exact_form_agrees_with_all_orders_of_two_candidates",
        ),
    ),
    "certificate of two places at once": Mutant(
        mistake="The best order lets outcomes go back to where fewer of the others score below.",
        file="privacy/selection/witness.py",
        old="        best = np.maximum.accumulate((row + best)[::-1])[::-1] - row\n",
        new="        best = np.maximum(best, placed[-1, -1] - row)\n",
        tests=(
            "privacy/selection/test_score_orders.py::test_gain_is_what_an_order_written_out_loses",
        ),
    ),
    "places for nothing": Mutant(
        mistake=(
            "A potential is charged for at the outcomes, and what it adds up to along the order is "
            "left out."
        ),
        file="privacy/selection/potentials.py",
        old="    total = mesh.change(values) + at_one + right_hinges + left_hinges\n",
        new="    total = at_one + right_hinges + left_hinges\n",
        tests=(
            "privacy/selection/test_potentials.py::test_bound_by_any_potential_is_never_below_the_exact_loss",
        ),
    ),
    "prices that are not paid": Mutant(
        mistake=(
            "What outcomes gain is lowered by the price of their place, and the price is not added."
        ),
        file="privacy/selection/prices_on_places.py",
        old="    bound = (paid + float(room.masses @ unpaid)) * (1.0 + SLACK)\n",
        new="    bound = float(room.masses @ unpaid) * (1.0 + SLACK)\n",
        tests=(
            "privacy/selection/test_prices_on_places.py::test_bound_is_above_the_best_order_of_pure_runs_and_close_to_it",
        ),
    ),
    "prices below zero": Mutant(
        mistake="Prices are refunds where those above gain less.",
        file="privacy/selection/prices_on_places.py",
        old="        sums[i] = total = max(total + step, 0.0)\n",
        new="        sums[i] = total = total + step - 1e-3\n",
        tests=(
            "privacy/selection/test_prices_on_places.py::test_bound_is_above_the_best_order_of_pure_runs_and_close_to_it",
        ),
    ),
    "prices over half the width": Mutant(
        mistake="What is paid is added up over half the room and half the quantiles.",
        file="privacy/selection/prices_on_places.py",
        old="    return float(np.sum(0.5 * (values[1:] + values[:-1])",
        new="    return float(np.sum(0.25 * (values[1:] + values[:-1])",
        tests=(
            "privacy/selection/test_prices_on_places.py::test_bound_by_any_prices_is_never_below_the_exact_loss",
        ),
    ),
    "room above the region": Mutant(
        mistake=(
            "Outcomes of low likelihood ratio below a place are not counted: less seems to be "
            "below than may be."
        ),
        file="privacy/selection/prices_on_places.py",
        old="        return (low + impossible) * (1.0 + ROUNDING) + 1e-15\n",
        new="        return 0.5 * low\n",
        tests=(
            "privacy/selection/test_prices_on_places.py::test_bound_is_above_the_best_order_of_pure_runs_and_close_to_it",
        ),
    ),
    "half of a chain": Mutant(
        mistake="A replaced record of a subset search counts as one that is removed.",
        file="privacy/selection/subset.py",
        old='{"chain": ChangedRecord(presence=presence),',
        new='{"chain": presence,',
        tests=(
            "privacy/selection/test_subset_replaced.py::test_bound_is_never_below_the_exact_loss",
        ),
    ),
    "Rényi curve under replace-one": Mutant(
        mistake=(
            "The Rényi curve of the sampled Gaussian for an added record is used for a changed one."
        ),
        file="privacy/guarantees/single_mechanisms.py",
        old='return self.neighboring != "replace_one"',
        new="return True",
        tests=(
            "privacy/guarantees/test_single_mechanisms.py::test_renyi_curve_grows_with_its_order_and_bounds_the_profile",
        ),
    ),
    "DP-SGD in one direction": Mutant(
        mistake="The record is only ever removed, never added.",
        file="privacy/numerics/basic_mechanisms.py",
        old="combine([step], lambda parts, _: convolve(parts, [steps]))",
        new="symmetric(convolve([step.added], [steps]))",
        tests=("privacy/numerics/test_basic_mechanisms.py::test_dpsgd_agrees_with_dp_accounting",),
    ),
    "search in one direction": Mutant(
        mistake="Theorem 1 is evaluated for a removed record and not for an added one.",
        file="privacy/selection/best_of.py",
        old="for i in range(len(self._hinges))], axis=0)",
        new="for i in range(1)], axis=0)",
        tests=("privacy/selection/test_best_of.py::test_both_orders_of_the_neighbours_count",),
    ),
    "one quantile for all outcomes": Mutant(
        mistake="The maximum over quantiles is taken once, not for every outcome: not a bound.",
        file="privacy/selection/testing_region.py",
        old="hull = _hull_of_lines(height.tolist(), fall.tolist())",
        new="hull = [0, height.size - 1]",
        tests=(
            "privacy/selection/test_testing_region.py::test_hinges_are_the_upper_envelope_of_their_lines",
        ),
    ),
    "one run's ε for the search": Mutant(
        mistake="The search reports what one run costs.",
        file="privacy/selection/best_of.py",
        old="if isinstance(one_run, NonPrivate) or distribution == Fixed(1):",
        new="if True:",
        tests=(
            "privacy/selection/test_verify.py::test_the_epsilon_of_one_run_is_false_for_the_search",
        ),
    ),
    "geometric for Poisson": Mutant(
        mistake=(
            "A search with a Poisson number of runs is accounted by the geometric distribution."
        ),
        file="privacy/selection/best_of.py",
        old="BestOf, one_run=one_run, count=distribution,",
        new="BestOf, one_run=one_run, count=as_count_distribution(distribution.mean),",
        tests=(
            "privacy/selection/test_best_of.py::test_poisson_search_costs_at_most_the_stated_figure",
        ),
    ),
    "δ not multiplied": Mutant(
        mistake="The binomial bound's δ is one run's, not the mean number of runs times it.",
        file="privacy/selection/published_bounds.py",
        old="shifted(one_run, distribution.mean * scale, smallest)",
        new="shifted(one_run, 1.0, smallest)",
        tests=(
            "privacy/selection/test_best_of_published.py::test_corollary_5_8_is_the_limit_of_theorem_5_7",
        ),
    ),
    "maximum for sum": Mutant(
        mistake="The composition of pure guarantees costs the largest ε.",
        file="privacy/guarantees/composition.py",
        old="self._if_all_pure(_sum_rounded_up)",
        new="self._if_all_pure(max)",
        tests=(
            "privacy/guarantees/test_composition.py::test_pure_guarantees_add_up_at_delta_zero_and_gain_above",
        ),
    ),
    "relations mixed": Mutant(
        mistake="Guarantees about an added and about a changed record are composed.",
        file="privacy/guarantees/base.py",
        old="    if len(relations) != 1:\n",
        new="    if len(relations) > 2:\n",
        tests=(
            "privacy/guarantees/test_composition.py::test_guarantees_under_different_neighbouring_relations_never_combine",
        ),
    ),
    "K clamped": Mutant(
        mistake="No more than 100 runs are ever drawn, and the accountant does not know.",
        file="privacy/count_distributions/base.py",
        old='return self._exact_quantile((bits + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 256)',
        new='return min(100, self._exact_quantile((bits + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 256))',
        tests=(
            "privacy/count_distributions/test_distributions.py::test_large_draws_are_as_large_as_the_distribution_says",
        ),
    ),
    "subset search by the average ε": Mutant(
        mistake="ε of tuning on a random subset is averaged instead of e^ε.",
        file="privacy/selection/subset.py",
        old="mixed = min(log_mean_exp(a, outside, self.fraction), max(a, outside))",
        new="mixed = self.fraction * a + (1 - self.fraction) * outside",
        tests=(
            "privacy/selection/test_subset.py::test_bound_holds_for_parts_known_only_by_their_largest_loss_and_is_reached",
        ),
    ),
    "secret membership that is known": Mutant(
        mistake="Amplification is claimed although a part tells who is in the subset.",
        file="privacy/selection/subset.py",
        old='if self.neighboring == "replace_one" or not self.secret_membership:',
        new='if self.neighboring == "replace_one":',
        tests=(
            "privacy/selection/test_subset.py::"
            "test_a_changed_record_and_known_membership_cost_the_average_over_the_coin",
        ),
    ),
    "validating record that pays for the score alone": Mutant(
        mistake=(
            "A record that validates and then trains the final model pays for its score and not "
            "for the training."
        ),
        file="privacy/selection/subset.py",
        old="outside = [compose(self.validate, self.train), self.train]",
        new="outside = [self.validate, self.train]",
        tests=(
            "privacy/selection/test_subset.py::test_a_changed_record_and_known_membership_cost_the_average_over_the_coin",
        ),
    ),
    "everybody validates rarely": Mutant(
        mistake="The share of the records that validate is taken off the cost twice.",
        file="privacy/selection/subset.py",
        old="np.logaddexp(np.log1p(-share), np.log(share) + v.at(ends))",
        new="np.logaddexp(np.log1p(-share * share), 2 * np.log(share) + v.at(ends))",
        tests=(
            "privacy/selection/test_subset.py::test_bound_is_exact_where_both_ratios_rise_together",
        ),
    ),
    "stopping is free": Mutant(
        mistake="A search that stops at the first good run reports what one run costs.",
        file="privacy/selection/threshold.py",
        old="    return float(min(grown * (1.0 + 4e-15), 2.0 * epsilon))",
        new="    return float(epsilon)",
        tests=(
            "privacy/selection/test_threshold.py::test_pure_form_is_the_supremum_over_the_testing_region_and_less_than_twice_the_loss",
        ),
    ),
    "rejects are free": Mutant(
        mistake="Only accepts count in a walk of sparse-vector rounds with fresh thresholds.",
        file="privacy/selection/doubling.py",
        old="2 * accepts + rejects for accepts",
        new="2 * accepts for accepts",
        tests=("privacy/selection/test_doubling.py::test_cost_is_that_of_the_worst_of_all_walks",),
    ),
    "noisy maximum without the factor 2": Mutant(
        mistake=(
            "The exponential mechanism is charged Δ/b although utilities may move against each "
            "other."
        ),
        file="privacy/selection/noisy_max.py",
        old="float_above(2 * exact / noise.scale)",
        new="float_above(exact / noise.scale)",
        tests=(
            "privacy/selection/test_noisy_max.py::test_guarantee_is_never_below_the_exact_loss",
        ),
    ),
    "coins of 53 bits": Mutant(
        mistake=(
            "A coin compares a uniform double with a probability: 1e-17 comes out eleven times too "
            "often."
        ),
        file="privacy/mechanisms/array_sampling.py",
        old="digits, remaining = divmod(remaining * 2**64, 1)",
        new="digits, remaining = int(-(-remaining * 2**53 // 1)) * 2**11, 0",
        tests=(
            "privacy/mechanisms/test_array_sampling.py::test_a_probability_of_1e_17_is_not_that_of_a_53_bit_uniform",
        ),
    ),
    "zero drawn twice": Mutant(
        mistake=(
            "Discrete Laplace noise from a magnitude and a sign, with zero counted for both signs."
        ),
        file="privacy/mechanisms/exact_sampling.py",
        old="    if negative and magnitude == 0:",
        new="    if False:",
        tests=(
            "privacy/mechanisms/test_exact_sampling.py::test_a_round_of_the_discrete_laplace_algorithm_has_exactly_the_stated_ratios",
        ),
    ),
    "odd record forgotten": Mutant(
        mistake="A chain of 2h + 1 neighbours is accounted as one of 2h.",
        file="privacy/guarantees/neighboring_relations.py",
        old="return joined if steps % 2 == 0 else pair_of_joined_chains(joined, pair)",
        new="return joined",
        tests=("privacy/guarantees/test_group.py::test_the_bound_is_reached_by_a_gaussian_chain",),
    ),
    "rho multiplied by m": Mutant(
        mistake=(
            "Zero-concentrated privacy of a person with m records is taken as m·ρ in the place of "
            "m²·ρ."
        ),
        file="privacy/guarantees/neighboring_relations.py",
        old='ZCDP: ("rho", 2),',
        new='ZCDP: ("rho", 1),',
        tests=(
            "privacy/guarantees/test_group.py::test_pure_guarantees_are_multiplied_and_never_rounded_down",
        ),
    ),
    # --- the statement ----------------------------------------------------------------------------
    "ε printed to the nearest digit": Mutant(
        mistake="An ε of 2.4541 is stated as 2.454.",
        file="privacy/statement/content.py",
        old="quantize(Decimal(1).scaleb(-digits), ROUND_CEILING, EXACT)",
        new="quantize(Decimal(1).scaleb(-digits), 'ROUND_HALF_EVEN', EXACT)",
        tests=(
            "privacy/statement/test_report.py::test_an_epsilon_is_never_printed_below_itself_nor_far_above",
        ),
    ),
}
