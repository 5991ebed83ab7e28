"""What a search would cost on jobs that no laptop runs: time, memory, traffic and epsilon, before
anything is started.

    python examples/benchmarks/at_scale.py            # epsilon at a given noise: seconds
    # also the noise with which all is epsilon = 0.5: minutes
    python examples/benchmarks/at_scale.py --full

Two jobs: a net whose one training takes 1,000 GPU hours, and a small net on 10^9 records of a
table. Epsilon comes from the accountant of the searches. Time follows from the distribution of K,
the share of the records that train, and the time of one training: it is given for the first job,
and for the second measured here, on this machine, in seconds per record. Bytes on the line are what
examples/benchmarks/cluster.py measured, in copies of the records per worker. Everything else that
is assumed stands in ``JOBS``. "days" is for K = 15 and "19 of 20" for the K that 19 of 20 searches
do not exceed, with a candidate on each device; "device h" is the mean.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from sklearn_dpsearch.nets import DPMLPClassifier
from sklearn_dpsearch.privacy import (
    DPSGD,
    Geometric,
    Guarantee,
    best_of,
    calibrate,
    subset_then_train,
)

#: Copies of the records that went over the line per worker, measured by cluster.py on two workers
#: of one machine.
COPIES = 1.6
#: Numbers of four bytes for each parameter of a candidate in training: itself, its sum of clipped
#: gradients, its noise, and one more for an optimizer with momentum.
NUMBERS = 4
DISTRIBUTION = Geometric(15)
FRACTIONS = (0.01, 0.1)


@dataclass(frozen=True)
class Job:
    """What is assumed of one job.

    Parameters
    ----------
    records, lot, steps : int
        Of one training on all records.
    noise : float
        Noise multiplier of one training.
    record_bytes, parameters, activations : int
        Bytes of a record; numbers in the net; numbers that one record needs in a forward and
        backward pass.
    at_once : int
        Records whose activations are held at the same time: a lot is summed in parts of this size.
    hours : float
        Of one training on one device.
    devices : int
        How many there are for the search.
    memory : float
        Bytes of memory of one device.
    """

    name: str
    records: int
    lot: int
    steps: int
    noise: float
    record_bytes: int
    parameters: int
    activations: int
    at_once: int
    hours: float
    devices: int
    memory: float

    @property
    def delta(self) -> float:
        """A tenth of one divided by the number of records."""
        return 0.1 / self.records

    def run(self, noise: float) -> Guarantee:
        """One training; a candidate on a subset has the same rate and as many steps, so its lots
        are smaller."""
        return DPSGD(noise_multiplier=noise, sample_rate=self.lot / self.records, steps=self.steps)

    @property
    def stack(self) -> int:
        """Candidates that fit on one device beside each other, each with its activations."""
        candidate = 4 * (NUMBERS * self.parameters + self.at_once * self.activations)
        return max(0, int(0.9 * self.memory // candidate))


JOBS = (
    Job(
        "a net of 1,000 GPU hours", 10**7, 16_384, 50_000, 1.0, 150_000, 25 * 10**6, 10**7, 256,
        1_000.0, 16, 80e9,
    ),
    Job(
        "10^9 records of a table", 10**9, 65_536, 45_776, 1.0, 200, 50_000, 1_000, 4_096, math.nan,
        16, 16e9,
    ),
)  # fmt: skip


# --- what is measured here ------------------------------------------------------------------------


def seconds_per_record(number: int = 20_000, features: int = 50) -> float:
    """Of training a net with 128 hidden units, without what a fit takes besides; the best of
    three."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (number, features)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)

    def fit(epochs: int) -> float:
        net = DPMLPClassifier(
            (128,),
            classes=[0, 1],
            bounds_X=(-1, 1),
            noise_multiplier=1.0,
            sample_rate=2048 / number,
            max_epochs=epochs,
        )
        begin = time.perf_counter()
        net.fit(X, y)
        return time.perf_counter() - begin

    fit(1)
    return min(fit(9) - fit(1) for _ in range(3)) / (8 * number)


# --- the searches ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """One way to search: its guarantee from the noise of a training, and how many records each
    training sees."""

    name: str
    guarantee: Callable[[Job, float], Guarantee]
    tried: float  # share of the records that a candidate trains on; 0: nothing is tried
    last: float  # share of the records of a training after the choice


def subset(fraction: float) -> Choice:
    """Tune on a share of the records, and train the winner on the rest. Candidates are scored on
    public records."""

    def guarantee(job: Job, noise: float) -> Guarantee:
        run = job.run(noise)
        return subset_then_train(best_of(run, DISTRIBUTION), run, fraction, "rest")

    return Choice(f"subset, {fraction:g}", guarantee, fraction, 1.0 - fraction)


CHOICES = (
    Choice("one fit, no search", lambda job, noise: job.run(noise), 0.0, 1.0),
    Choice("random search", lambda job, noise: best_of(job.run(noise), DISTRIBUTION), 1.0, 0.0),
    *map(subset, FRACTIONS),
)


def days(job: Job, choice: Choice, number: float) -> float:
    """Time of all of these candidates: each device takes the next one, and the last training has
    one."""
    waves = math.ceil(number / job.devices) if choice.tried else 0
    return job.hours * (waves * choice.tried + choice.last) / 24


def device_hours(job: Job, choice: Choice) -> float:
    """All work, on average over K."""
    return job.hours * (DISTRIBUTION.mean * choice.tried + choice.last)


def rows(job: Job, full: bool) -> Iterator[str]:
    for choice in CHOICES:
        epsilon = choice.guarantee(job, job.noise).epsilon_at(job.delta)
        often, seldom = (
            days(job, choice, DISTRIBUTION.mean),
            days(job, choice, DISTRIBUTION.quantile(0.95)),
        )
        sent = (
            COPIES * min(job.devices, DISTRIBUTION.mean) * job.records * job.record_bytes
            if choice.tried
            else 0.0
        )
        noise = calibrated(job, choice) if full else ""
        yield (
            f"  {choice.name:20}{epsilon:9.3f}{device_hours(job, choice):12,.1f}"
            f"{often:10.1f}{seldom:10.1f}"
            f"{choice.tried * job.records:14,.0f}{sent / 1e12:10.2f}{noise}"
        )


def calibrated(job: Job, choice: Choice, total: float = 0.5) -> str:
    """The noise multiplier with which the whole spends the total."""
    noise = calibrate(lambda noise: choice.guarantee(job, noise), total, job.delta, tolerance=1e-2)
    return f"{noise:10.3f}"


def show(job: Job, full: bool) -> None:
    size = job.records * job.record_bytes
    print(
        f"{job.name}: {job.records:,} records of {job.record_bytes:,} bytes ({size / 1e12:.2f} "
        f"TB), lot {job.lot:,}, {job.steps:,} steps ({job.steps * job.lot / job.records:.0f} "
        f"epochs), noise {job.noise:g}, delta = {job.delta:.0e};\n  one training {job.hours:,.1f} "
        f"hours on one device, {job.devices} devices of {job.memory / 1e9:.0f} GB, {job.stack} "
        f"candidates fit on one at a time"
    )
    names = (
        "epsilon",
        "device h",
        "days",
        "19 of 20",
        "records tried",
        "TB sent",
        *(["noise"] if full else []),
    )
    print(
        f"  {'':20}"
        + "".join(f"{name:>{width}}" for name, width in zip(names, (9, 12, 10, 10, 14, 10, 10)))
    )
    for row in rows(job, full):
        print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    torch.set_num_threads(1)
    seconds = seconds_per_record()
    print(
        f"measured here: {seconds * 1e6:.2f} microseconds per record and pass, on one thread, of a "
        f"net with 128 units"
    )
    print(
        f"K ~ Geometric({DISTRIBUTION.mean:g}): 19 of 20 searches try at most "
        f"{DISTRIBUTION.quantile(0.95)} candidates"
    )
    for job in JOBS:
        device = (
            job
            if not math.isnan(job.hours)
            else replace(job, hours=seconds * job.steps * job.lot / 3600)
        )
        show(device, full)


if __name__ == "__main__":
    main()
