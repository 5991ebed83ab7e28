"""Coins and noise are secret, each training's own, of the right distribution; and the facts that
led to this design."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading

import numpy as np
import pytest
import torch
from scipy import stats

from sklearn_dpsearch._process.random_generators import TORCH_STATE, TORCH_WORDS, refresh, reseed
from sklearn_dpsearch.nets._randomness import (
    STREAMS,
    Secrets,
    _stream_seed,
    fill_normals,
    global_torch_seed,
    reading_generator,
    seed_sequence,
)

from .toys import flat, records, training

DRAWS = 2_000_000 if os.environ.get("SKLEARN_DPSEARCH_FULL") else 200_000
# Python 3.12 and newer
FORK = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def normals(source, n=8):
    out = torch.empty(n, dtype=torch.float64)
    source.normals(out)
    return out.numpy()


def fingerprint(_=None):
    source = Secrets()
    return normals(source).tobytes() + source.coins.bytes(32)


def seed_everything():
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


# --- unseeded -------------------------------------------------------------------------------------


def test_unseeded_trainings_never_repeat_even_if_the_user_seeds_every_global_generator():
    found = set()
    for _ in range(20):
        seed_everything()
        found.add(fingerprint())
    assert len(found) == 20


def test_noise_does_not_depend_on_how_many_coins_were_tossed():
    untouched, tossed = Secrets(0), Secrets(0)
    tossed.coins.bytes(1000)
    np.testing.assert_array_equal(normals(tossed), normals(untouched))


@FORK
def test_forked_workers_do_not_repeat_each_other():
    seed_everything()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(fingerprint, range(8), chunksize=1)
    assert len({*found, fingerprint()}) == 9


def test_an_unseeded_training_is_new_every_time_and_leaves_the_users_generators_alone():
    from sklearn_dpsearch.nets._training import train

    found = set()
    for _ in range(3):
        seed_everything()
        states = torch.get_rng_state(), np.random.get_state()[1].tobytes(), random.getstate()
        task = training(noise_multiplier=1.0, seed=None)
        train(task, records(), max_physical_batch=100)
        found.add(flat(task.module).numpy().tobytes())
        assert torch.equal(states[0], torch.get_rng_state())
        assert states[1:] == (np.random.get_state()[1].tobytes(), random.getstate())
    assert len(found) == 3


# --- seeded, for tests ----------------------------------------------------------------------------


def test_a_seed_repeats_and_another_does_not_whatever_its_size():
    seeds = [0, 5, 5 + 2**32, 5 + 2**64, 2**200]
    found = [normals(Secrets(seed)).tobytes() for seed in seeds]
    assert len(set(found)) == len(seeds)
    assert found == [normals(Secrets(seed)).tobytes() for seed in seeds]


def test_a_random_state_gives_all_its_entropy():
    state = np.random.RandomState(3)
    first, second = seed_sequence(state), seed_sequence(state)
    assert first.entropy != second.entropy
    assert len(first.entropy) == 8
    assert seed_sequence(np.random.RandomState(3)).entropy == first.entropy


def test_unseeded_sequences_hold_256_bits():
    entropies = [seed_sequence().entropy for _ in range(200)]
    assert max(entropies).bit_length() > 240
    assert seed_sequence().pool_size == 8  # words of 32 bits: none of the 256 is lost


# --- the distribution of the noise
# ----------------------------------------------------------------------------------------


def test_noise_is_standard_normal():
    found = normals(Secrets(1), DRAWS)
    assert abs(found.mean()) < 5 / np.sqrt(DRAWS)
    assert abs(found.var() - 1) < 5 * np.sqrt(2 / DRAWS)
    assert stats.kstest(found, "norm").pvalue > 1e-6


def test_noise_has_the_tails_and_the_resolution_of_double_precision():
    found = normals(Secrets(2), DRAWS)
    assert len(np.unique(found)) == DRAWS  # single precision from 24 bits would repeat many values
    far = (np.abs(found) > 4).mean()
    assert far == pytest.approx(2 * stats.norm.sf(4), rel=0.5 if DRAWS < 10**6 else 0.2)


def test_noise_of_one_step_tells_nothing_about_the_next():
    source = Secrets(3)
    steps = np.stack([normals(source, 20) for _ in range(DRAWS // 20)])
    assert abs(np.corrcoef(steps[1:].ravel(), steps[:-1].ravel())[0, 1]) < 5 / np.sqrt(DRAWS)


def test_a_net_has_the_same_noise_in_any_company():
    alone = torch.empty(1, 50, dtype=torch.float64)
    fill_normals([Secrets(4)], [1.0], alone)
    together = torch.empty(3, 50, dtype=torch.float64)
    fill_normals([Secrets(8), Secrets(4), Secrets(9)], [1.0] * 3, together)
    assert torch.equal(alone[0], together[1])


# --- initial weights and dropout masks, which only PyTorch's global generator serves --------------


def test_the_global_generator_is_seeded_afresh_and_put_back():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with global_torch_seed():
        first = torch.randn(3)
    assert torch.equal(before, torch.get_rng_state())
    with global_torch_seed():
        assert not torch.equal(first, torch.randn(3))
    with global_torch_seed(7):
        once = torch.randn(3)
    with global_torch_seed(7):
        assert torch.equal(once, torch.randn(3))


@pytest.mark.parametrize("fresh", [reseed, lambda: refresh(torch.default_generator)])
def test_a_run_has_more_states_of_pytorch_than_can_be_tried(fresh):
    """``manual_seed`` keeps 32 bits on a CPU: noise that Opacus draws could be found by trying
    them."""
    with torch.random.fork_rng():
        fresh()
        seed, drawn = torch.initial_seed(), torch.rand(8)
        assert not torch.equal(drawn, torch.rand(8, generator=torch.Generator().manual_seed(seed)))
        words = torch.get_rng_state()[TORCH_WORDS].numpy().view(np.uint64)
        assert len(set(words.tolist())) > 600


def test_masks_come_from_more_than_the_32_bits_of_a_seed():
    """A record more moves the masks of those after it: whoever tried all seeds would know them."""
    with global_torch_seed(7):
        seed, found = torch.initial_seed(), torch.rand(8)
    assert not torch.equal(found, torch.rand(8, generator=torch.Generator().manual_seed(seed)))
    words = (
        torch.Generator().manual_seed(2**31 + 5).get_state()[TORCH_WORDS].numpy().view(np.uint64)
    )
    assert words[0] == 2**31 + 5  # they do lie there: the first one of MT19937 is the seed,
    # and NumPy has the same
    np.testing.assert_array_equal(words, np.random.RandomState(2**31 + 5).get_state()[1])
    assert torch.get_rng_state().numel() == TORCH_STATE


def test_the_global_generator_is_put_back_after_an_error_too():
    before = torch.get_rng_state()
    with pytest.raises(KeyError), global_torch_seed():
        raise KeyError
    assert torch.equal(before, torch.get_rng_state())
    with global_torch_seed():  # and the lock is free
        pass


def test_threads_do_not_disturb_each_others_seeds():
    found = {}

    def make(seed):
        with global_torch_seed(seed):
            found[seed] = [torch.randn(1).item() for _ in range(50)]

    threads = [threading.Thread(target=make, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for seed, values in found.items():
        with global_torch_seed(seed):
            assert values == [torch.randn(1).item() for _ in range(50)]


# --- facts ----------------------------------------------------------------------------------------


def test_no_two_streams_of_a_training_draw_the_same():
    own = Secrets(7)
    generators = [own.coins, own.rows, own.turns, own._noise, reading_generator(7)]
    first = [generator.bit_generator.random_raw() for generator in generators]
    assert len(set(first)) == len(STREAMS) == len(first)
    words = {tuple(_stream_seed(seed_sequence(7), name).generate_state(4)) for name in STREAMS}
    assert len(words) == len(STREAMS)
