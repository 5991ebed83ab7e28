"""Mistakes in DP-SGD."""

from .mutant import Mutant

MUTANTS = {
    "clip after the sum": Mutant(
        mistake="One factor for the whole batch, from its longest gradient.",
        file="nets/_engines/base.py",
        old="    factors = (bounds / norms).clamp_(max=1.0)\n",
        new="    factors = (bounds / norms.amax(-1, keepdim=True)).clamp_(max=1.0)\n",
        test="nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",
    ),
    "no clipping": Mutant(
        mistake="Gradients are added as they are.",
        file="nets/_engines/base.py",
        old="    factors = (bounds / norms).clamp_(max=1.0)\n",
        new="    factors = (bounds > 0).to(norms.dtype)\n",
        test="nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",
    ),
    "bias left out of the norm": Mutant(
        mistake="The clipping norm is that of the weights alone.",
        file="nets/_engines/linear.py",
        old="torch.addcmul(self._has_bias, along, self._has_weight)",
        new="torch.addcmul(0 * self._has_bias, along, self._has_weight)",
        test="nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",
    ),
    "half the noise": Mutant(
        mistake="Noise of half the scale.",
        file="nets/_stacked_training.py",
        old="return task.noise_multiplier * task.max_grad_norm * rounding",
        new="return 0.5 * task.noise_multiplier * task.max_grad_norm * rounding",
        test="nets/test_stacked_training.py::test_noise_of_an_update_has_the_stated_variance",
    ),
    "actual batch size": Mutant(
        mistake="The noisy sum is divided by the number of records that are in the batch.",
        file="nets/_stacked_training.py",
        old="self.gradients.copy_(self.sums).div_(self.divisors)",
        new=(
            "actual = (batches < len(self.records)).sum(1, keepdim=True)\n"
            "        self.gradients.copy_(self.sums).div_(actual.clamp(min=1))"
        ),
        test="nets/engines/test_engines.py::test_steps_without_noise_are_those_of_opacus",
    ),
    "same noise every time": Mutant(
        mistake="Without a seed, batches and noise start from a constant.",
        file="nets/_randomness.py",
        old="np.random.SeedSequence(secrets.randbits(256) if seed is None else seed, pool_size=8)",
        new="np.random.SeedSequence(67280421310721 if seed is None else seed, pool_size=8)",
        test="nets/test_randomness.py::test_unseeded_trainings_never_repeat_even_if_the_user_seeds_every_global_generator",
    ),
    "batches of fixed size": Mutant(
        mistake="Batches are cut from one order, a record once an epoch, and counted as Poisson.",
        file="nets/_sampling.py",
        old="gaps = self._coins.geometric(self._rate, number)",
        new="gaps = np.full(number, round(1 / self._rate))",
        test="nets/test_sampling.py::test_batch_sizes_are_binomial",
    ),
    "places one by one": Mutant(
        mistake="The norm of a convolution is that of its places' terms, whose sum can be longer.",
        file="nets/_engines/layer_gradients.py",
        old="DenseGradients(grad_outputs.flatten(2).sum(2))",
        new="DenseGradients(grad_outputs.flatten(2).norm(dim=2))",
        test="nets/engines/test_layered.py::test_every_rule_gives_what_autograd_gives_record_by_record",
    ),
    "rounding not paid for": Mutant(
        mistake="Single-precision sums of clipped gradients count as exact.",
        file="nets/_engines/rounding.py",
        old="    return 1.0 + NORM_EXCESS + single + DOUBLE_ROUNDING * float(rows) ** 2\n",
        new="    return 1.0\n",
        test="nets/engines/test_rounding.py::test_pieces_keep_the_bound_that_the_noise_pays_for",
    ),
    "warm start free": Mutant(
        mistake="A second training from the parameters of the first costs what it costs alone.",
        file="nets/_estimators/cost.py",
        old="guarantee=compose(*(statement.guarantee for statement in spent)),",
        new="guarantee=spent[-1].guarantee,",
        test="nets/estimators/test_array_estimators.py::test_partial_fit_and_warm_start_add_to_the_cost",
    ),
    "rate from the data": Mutant(
        mistake="A guarantee is stated for a batch size without a number of records.",
        file="nets/_estimators/settings.py",
        old='raise PrivacyError(\n            f"Found batch_size={net.batch_size} and',
        new='return 0.5\n        raise PrivacyError(\n            f"Found {net.batch_size} and',
        test="nets/estimators/test_array_estimators.py::test_a_batch_size_alone_is_divided_by_the_number_of_records",
    ),
    "one noise for two trainings": Mutant(
        mistake="Trainings on two data sets with one seed have the same batches and noise.",
        file="nets/_estimators/base.py",
        old="seed_of_training(self.noise_seed, words)",
        new="seed_sequence(self.noise_seed)",
        test="nets/estimators/test_seeded_noise.py",
    ),
    "operations across the records": Mutant(
        mistake="A maximum, mean or choice over the batch counts as acting on each record alone.",
        file="nets/_engines/operation_rules.py",
        old="    needs(dim % rank != 0, ",
        new="    needs(True, ",
        test="nets/engines/test_operations.py::test_operations_across_records_are_refused",
    ),
    "blank rows of the last record": Mutant(
        mistake="A row without a record holds the last record, of which a token may stop the fit.",
        file="nets/_records.py",
        old="    blank = flat >= n\n",
        new="    blank = flat > n\n",
        test="nets/test_no_record_stops_a_fit.py::test_a_row_without_a_record_holds_zeros",
    ),
    "a word that no table knows": Mutant(
        mistake="A token without a row in the embedding is read as token 0, and is trained on.",
        file="nets/_engines/base.py",
        old="    return outputs.masked_fill(unknown.unsqueeze(-1), torch.nan)\n",
        new="    return outputs\n",
        test="nets/test_no_record_stops_a_fit.py::test_a_record_that_cannot_be_computed_is_blank",
    ),
    "augmentation that the user seeded": Mutant(
        mistake="A dataset draws for a record by the order of reading and a public seed.",
        file="nets/_records.py",
        old="                _seed_global_generators(words, self.device)\n",
        new="",
        test="nets/estimators/test_input_records.py",
    ),
    "noise alone": Mutant(
        mistake="A module without a finite gradient on single records is trained: on noise.",
        file="nets/_engines/engine_choice.py",
        old="    if not any(bool(record_loss.isfinite()) for record_loss in single):\n",
        new="    if False:\n",
        test="nets/engines/test_engine_choice.py::test_refusals_say_what_it_is",
    ),
}
