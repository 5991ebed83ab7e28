"""Mistakes in DP-SGD."""

from .mutant import Mutant

MUTANTS = {
    "clip after the sum": Mutant(
        mistake="One factor for the whole batch, from its longest gradient.",
        file="nets/engines/base.py",
        old="    factors = (bounds / norms).clamp_(max=1.0)\n",
        new="    factors = (bounds / norms.amax(-1, keepdim=True)).clamp_(max=1.0)\n",
        tests=("nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",),
    ),
    "no clipping": Mutant(
        mistake="Gradients are added as they are.",
        file="nets/engines/base.py",
        old="    factors = (bounds / norms).clamp_(max=1.0)\n",
        new="    factors = (bounds > 0).to(norms.dtype)\n",
        tests=("nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",),
    ),
    "a gradient that is not finite": Mutant(
        mistake="An infinite gradient times zero makes every parameter NaN: its record is recognised.",
        file="nets/engines/base.py",
        old="    return factors if finite is None else torch.where(finite, factors, 0.0)",
        new="    return factors",
        tests=("nets/engines/test_engines.py::test_a_record_without_a_finite_gradient_contributes_nothing",),
    ),
    "bias left out of the norm": Mutant(
        mistake="The clipping norm is that of the weights alone.",
        file="nets/engines/linear.py",
        old="torch.addcmul(self._has_bias, along, self._has_weight)",
        new="torch.addcmul(0 * self._has_bias, along, self._has_weight)",
        tests=("nets/engines/test_engines.py::test_plain_nets_sum_what_autograd_gives_record_by_record",),
    ),
    "noise without the clipping norm": Mutant(
        mistake="Noise is not scaled with the clipping norm.",
        file="nets/stacked_training.py",
        old="return task.noise_multiplier * task.max_grad_norm * rounding",
        new="return task.noise_multiplier * rounding",
        tests=("nets/test_stacked_training.py::test_noise_of_an_update_has_the_stated_variance",),
    ),
    "half the noise": Mutant(
        mistake="Noise of half the scale.",
        file="nets/stacked_training.py",
        old="return task.noise_multiplier * task.max_grad_norm * rounding",
        new="return 0.5 * task.noise_multiplier * task.max_grad_norm * rounding",
        tests=("nets/test_stacked_training.py::test_noise_of_an_update_has_the_stated_variance",),
    ),
    "actual batch size": Mutant(
        mistake="The noisy sum is divided by the number of records that happen to be in the batch.",
        file="nets/stacked_training.py",
        old="self.gradients.copy_(self.sums).div_(self.divisors)",
        new=(
            "actual = (batches < len(self.records)).sum(1, keepdim=True)\n"
            "        self.gradients.copy_(self.sums).div_(actual.clamp(min=1))"
        ),
        tests=("nets/engines/test_engines.py::test_steps_without_noise_are_those_of_opacus", "nets/test_training.py"),
    ),
    "batches cut off": Mutant(
        mistake="Of a batch that is too large for the memory only the first chunk is used.",
        file="nets/stacked_training.py",
        old="batches.split(self.width, dim=1):",
        new="batches.split(self.width, dim=1)[:1]:",
        tests=("nets/test_training.py::test_memory_for_few_records_changes_nothing",),
    ),
    "noise shared by stacked nets": Mutant(
        mistake="Nets that train together get the same noise.",
        file="nets/randomness.py",
        old="        source.normals(row, scale)\n",
        new=(
            "        if row.data_ptr() == out.data_ptr():\n            source.normals(row, scale)\n"
            "        else:\n            row.copy_(out[0] * (scale / scales[0]))\n"
        ),
        tests=("nets/test_stacked_training.py::test_nets_of_a_stack_have_noise_independent_of_each_other",),
    ),
    "same noise every time": Mutant(
        mistake="Without a seed, batches and noise start from a constant.",
        file="nets/randomness.py",
        old="np.random.SeedSequence(secrets.randbits(256) if seed is None else seed, pool_size=8)",
        new="np.random.SeedSequence(67280421310721 if seed is None else seed, pool_size=8)",
        tests=(
            "nets/test_randomness.py::test_unseeded_trainings_never_repeat_even_if_the_user_seeds_every_global_generator",
        ),
    ),
    "batches of fixed size": Mutant(
        mistake="Every batch is cut from the same order, each record once an epoch, and accounted as Poisson.",
        file="nets/sampling.py",
        old="gaps = self._coins.geometric(self._rate, number)",
        new="gaps = np.full(number, round(1 / self._rate))",
        tests=("nets/test_sampling.py::test_batch_sizes_are_binomial",),
    ),
    "coins in single precision": Mutant(
        mistake="Inclusion by 24-bit uniforms: at a rate of 1e-7 a fifth more records.",
        file="nets/sampling.py",
        old="gaps = self._coins.geometric(self._rate, number)",
        new="gaps = self._coins.geometric(np.ceil(self._rate * 2**24) / 2**24, number)",
        tests=("nets/test_sampling.py::test_gaps_are_geometric_at_a_rate_of_one_in_ten_million",),
    ),
    "rows in order": Mutant(
        mistake="A batch lies in the first rows, in order: a record that is drawn moves all later ones by a row.",
        file="nets/sampling.py",
        old="return self._rows.permuted(batches, axis=1, out=batches)",
        new="return batches",
        tests=("nets/test_sampling.py::test_whether_a_record_is_drawn_tells_nothing_of_the_rows_of_another",),
    ),
    "rows of the batch alone": Mutant(
        mistake="A batch has as many rows as records: the shape tells whether one more was drawn.",
        file="nets/stacked_training.py",
        old="        for chunk in batches.split(self.width, dim=1):\n            self._add(chunk)\n",
        new=(
            "        least = int((batches < len(self.records)).sum(1).max())\n"
            "        for chunk in batches.sort(dim=1).values[:, : max(least, 1)].split(self.width, dim=1):\n"
            "            self._add(chunk)\n"
        ),
        tests=("nets/test_stacked_training.py::test_every_batch_has_the_same_number_of_rows_whoever_was_drawn",),
    ),
    "large batches cut": Mutant(
        mistake="Of a batch with more records than rows the first ones are taken.",
        file="nets/sampling.py",
        old="            accepted = sizes <= self.rows\n            kept = accepted[step]\n",
        new=(
            "            accepted = sizes >= 0\n"
            "            kept = np.arange(len(step)) - (np.cumsum(sizes) - sizes)[step] < self.rows\n"
        ),
        tests=("nets/test_sampling.py::test_batches_are_poisson_samples_that_fit_into_the_rows",),
    ),
    "places of a secret subset counted": Mutant(
        mistake="A net in a subset search draws its batches from the records of the subset, whose number is secret.",
        file="nets/stacked_training.py",
        old="task.places or records.units)",
        new="records.units)",
        tests=("search/test_subset_search.py::test_no_shape_in_a_net_tells_how_many_records_are_in_the_subset",),
    ),
    "words one by one": Mutant(
        mistake="A word that comes twice in a record counts as two rows: the norm is too small.",
        file="nets/engines/layer_gradients.py",
        old="pairs, places = torch.unique(owners * number + words, return_inverse=True)",
        new=(
            "pairs = (owners * number + words).reshape(-1)\n"
            "        places = torch.arange(words.numel(), device=words.device)"
        ),
        tests=("nets/engines/test_layered.py::test_norms_are_those_of_the_gradients_alone",),
    ),
    "places one by one": Mutant(
        mistake="The norm of a convolution is that of its places' terms, whose sum can be longer.",
        file="nets/engines/layer_gradients.py",
        old='"weight": ConvolutionGradients(gradients), "bias": DenseGradients(grad_outputs.flatten(2).sum(2))}\n',
        new=(
            '"weight": ConvolutionGradients(gradients), "bias": DenseGradients(grad_outputs.flatten(2).norm(dim=2))}\n'
        ),
        tests=("nets/engines/test_layered.py::test_every_rule_gives_what_autograd_gives_record_by_record",),
    ),
    "rounding not paid for": Mutant(
        mistake="Single-precision sums of clipped gradients count as exact.",
        file="nets/engines/rounding.py",
        old="    return 1.0 + OWN + single + DOUBLE * float(rows) ** 2\n",
        new="    return 1.0\n",
        tests=("nets/engines/test_rounding.py::test_pieces_keep_the_bound_that_the_noise_pays_for",),
    ),
    "warm start free": Mutant(
        mistake="A second training from the parameters of the first costs what it costs alone.",
        file="nets/estimators/cost.py",
        old="guarantee=compose(*(one.guarantee for one in spent)),",
        new="guarantee=spent[-1].guarantee,",
        tests=("nets/estimators/test_array_estimators.py::test_partial_fit_and_warm_start_add_to_the_cost",),
    ),
    "rate from the data": Mutant(
        mistake="A guarantee is stated for a batch size without a number of records.",
        file="nets/estimators/settings.py",
        old='raise PrivacyError(\n            f"Found batch_size={net.batch_size} and no',
        new='return 0.5\n        raise PrivacyError(\n            f"Found batch_size={net.batch_size} and no',
        tests=(
            "nets/estimators/test_array_estimators.py::test_a_batch_size_alone_is_divided_by_the_number_of_records",
        ),
    ),
    "number of records told under add/remove": Mutant(
        mistake="The number of records scales the gradients and the guarantee is about adding one.",
        file="nets/estimators/settings.py",
        old='    if net.neighboring == "add_remove":\n        raise',
        new="    if False:\n        raise",
        tests=("nets/estimators/test_array_estimators.py::test_the_number_of_records_is_public",),
    ),
    "parameters forget what they cost": Mutant(
        mistake="A net that starts from another net's parameters states its own training alone.",
        file="nets/estimators/cost.py",
        old="    found = costs_on_module(net.module_)\n",
        new="    found = []\n",
        tests=("nets/test_checkpoints.py::test_a_net_that_starts_from_trained_parameters_adds_to_what_they_cost",),
    ),
    "one noise for two trainings": Mutant(
        mistake="Trainings on two data sets with one seed have the same batches and noise.",
        file="nets/estimators/base.py",
        old="seed_of_training(self.noise_seed, () if is_listened_to() else words)",
        new="seed_sequence(self.noise_seed)",
        tests=("nets/estimators/test_seeded_noise.py",),
    ),
    "seed of the noise in the release": Mutant(
        mistake="A pickled net tells the seed of its noise.",
        file="nets/estimators/base.py",
        old='        return {**state, "noise_seed": None} if "privacy_spent_" in state else state_in_block(state)\n',
        new="        return state\n",
        tests=("nets/test_checkpoints.py::test_the_seed_of_the_noise_stays_behind",),
    ),
    "operations across the records": Mutant(
        mistake="A maximum, a mean or a selection over the batch counts as acting on each record alone.",
        file="nets/engines/operation_rules.py",
        old="    needs(dim % rank != 0, ",
        new="    needs(True, ",
        tests=("nets/engines/test_operations.py::test_operations_across_records_are_refused",),
    ),
    "an index among the records": Mutant(
        mistake="Of sequences whose steps come first, and records second, a part is cut out over the records.",
        file="nets/engines/operation_rules.py",
        old='        needs(type(index) is int, "an index over the records")\n',
        new="",
        tests=("nets/engines/test_operations.py::test_operations_across_records_are_refused",),
    ),
    "altered layers": Mutant(
        mistake="A layer of PyTorch with a method that was put into its class is run on whole batches.",
        file="nets/engines/refused_modules.py",
        old=" or _is_patched(type(layer))\n",
        new="\n",
        tests=("nets/engines/test_engine_choice.py::test_an_altered_layer_that_mixes_records_sees_one_at_a_time",),
    ),
    "losses that look at the batch": Mutant(
        mistake="A criterion that divides by the weights of the batch counts as a sum over records.",
        file="nets/engines/engine_choice.py",
        old="known = outputs is not None and losses.sums_one_loss_per_record(criterion, outputs, targets)",
        new="known = outputs is not None",
        tests=("nets/engines/test_engine_choice.py::test_losses_that_weigh_by_the_batch_are_refused",),
    ),
    "a checkpoint that everybody can read": Mutant(
        mistake="The generators of the noise to come lie in a file that other users of the machine can read.",
        file="_durable.py",
        old="os.O_TRUNC | kind, mode)",
        new="os.O_TRUNC | kind, 0o644)",
        tests=("search/test_checkpoint_folder.py::test_the_folder_is_for_its_owner_alone_and_says_what_it_is",),
    ),
    "checkpoints of candidates": Mutant(
        mistake="Inner searches write checkpoints into one folder, and go on from each other's.",
        file="search/planning/checks.py",
        old='        if folder is not None and hasattr(part, "privacy_guarantee"):\n',
        new="        if False:\n",
        tests=("search/test_checkpoint.py::test_a_checkpoint_inside_of_a_search_is_refused",),
    ),
    "blank rows of the last record": Mutant(
        mistake="A row without a record holds the last record, of which a token may stop the fit.",
        file="nets/records.py",
        old="    blank = flat >= n\n",
        new="    blank = flat > n\n",
        tests=("nets/test_no_record_stops_a_fit.py::test_a_row_without_a_record_holds_zeros",),
    ),
    "a word that no table knows": Mutant(
        mistake="A token that an embedding has no row for is read as token 0: its record is trained on.",
        file="nets/engines/base.py",
        old="    return outputs.masked_fill(unknown.unsqueeze(-1), torch.nan)\n",
        new="    return outputs\n",
        tests=("nets/test_no_record_stops_a_fit.py::test_a_record_that_cannot_be_computed_is_blank",),
    ),
    "a failure that moves the others": Mutant(
        mistake="After a record has failed the others draw other random numbers than they would have drawn without it.",
        file="nets/engines/base.py",
        old="            restore_generators(self.device, state)\n",
        new="",
        tests=("nets/test_no_record_stops_a_fit.py::test_the_others_draw_what_they_would_draw_without_the_failure",),
    ),
    "augmentation that the user seeded": Mutant(
        mistake="What a dataset draws for a record follows from the order of reading, and a public seed.",
        file="nets/records.py",
        old="                _seed_global_generators(words, self.device)\n",
        new="",
        tests=("nets/estimators/test_input_records.py",),
    ),
    "masks that a dataset seeds": Mutant(
        mistake="A dataset that calls manual_seed in each reading chooses the masks of dropout, too.",
        file="nets/records.py",
        old='        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):\n',
        new="        with contextlib.nullcontext():\n",
        tests=(
            "nets/estimators/test_input_records.py::test_a_dataset_that_seeds_generators_does_not_choose_the_masks_of_dropout",
        ),
    ),
    "weights taken from the labels": Mutant(
        mistake="class_weight='balanced' is computed from the private labels.",
        file="data/labels.py",
        old="    if isinstance(given, str):\n",
        new="    if given == 'balanced':\n        return np.ones(2)\n    if isinstance(given, str):\n",
        tests=(
            "nets/estimators/test_class_weights.py::test_weights_that_are_no_constants_are_refused_before_data_is_read",
        ),
    ),
    "noise alone": Mutant(
        mistake="A module without a finite gradient on single records is trained: on noise.",
        file="nets/engines/engine_choice.py",
        old="    if not any(bool(one.isfinite()) for one in single):\n",
        new="    if False:\n",
        tests=("nets/engines/test_engine_choice.py::test_refusals_say_what_it_is",),
    ),
    "batch normalisation in training": Mutant(
        mistake="Batch normalisation that is not in evaluation mode counts as frozen.",
        file="nets/engines/refused_modules.py",
        old="    fixed = type(layer) in BATCH_NORMS and not layer.training and not is_altered(layer)\n",
        new="    fixed = type(layer) in BATCH_NORMS\n",
        tests=("nets/engines/test_engine_choice.py::test_batch_normalisation_with_statistics_of_the_batch_is_refused",),
    ),
    "skorch's own step": Mutant(
        mistake="A step of skorch's on a fitted net has gradients without noise, and privacy_spent_ stays as it is.",
        file="nets/estimators/skorch_base.py",
        old="    @torch.no_grad()\n    def infer(",
        new="    def infer(",
        tests=("nets/estimators/test_skorch_nets.py::test_skorchs_own_steps_train_nothing",),
    ),
    "each record of a person is drawn": Mutant(
        mistake="With groups records are drawn each by itself: a person with many moves a sum by many clipping norms.",
        file="nets/stacked_training.py",
        old="    return drawn if records.persons is None else PersonBatches(drawn, records.persons, own.turns)\n",
        new="    return PoissonBatches(own.coins, own.rows, task.sample_rate, len(records))\n",
        tests=("nets/test_persons.py::test_replacing_a_whole_person_moves_a_step_by_two_norms_at_most",),
    ),
}
