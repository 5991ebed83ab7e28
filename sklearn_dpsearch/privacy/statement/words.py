"""Words of a statement: fixed sentences by the kind of fit, and mechanisms for people who do not read code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .._types import Neighboring
from ..guarantees.base import Guarantee
from .content import short_down, short_up

#: Relation ↦ definition of neighbours, for a unit {one}.
NEIGHBOURS: dict[Neighboring, str] = {
    "add_remove": "Two data sets are neighbours if one of them has {one} more than the other.",
    "zero_out": (
        "Two data sets are neighbours if {one} of one of them is replaced by nothing in the other, in the same place."
    ),
    "replace_one": "Two data sets are neighbours if {one} of one of them is replaced by anything in the other.",
}
#: Relation ↦ definition of neighbours that differ in a person, with any number of records.
NEIGHBOURS_OF_PERSON: dict[Neighboring, str] = {
    "add_remove": "Two data sets are neighbours if one of them has the records of one person more than the other.",
    "zero_out": "Two data sets are neighbours if one person's records are all blanked in one of them.",
    "replace_one": "Two data sets are neighbours if one person's records are replaced by any others, of any number.",
}
#: Relation ↦ its name in words, with its name in the code.
RELATIONS: dict[Neighboring, str] = {
    "add_remove": "add or remove one (add_remove)",
    "zero_out": "blank one, in its place (zero_out)",
    "replace_one": "replace one (replace_one)",
}
#: Relation ↦ question of an attack.
QUESTION: dict[Neighboring, str] = {
    "add_remove": "whether the record of one person was in the data",
    "zero_out": "whether the record of one person was in the data, or nothing in its place",
    "replace_one": "which of two possible records of one person was in the data",
}
#: Relation ↦ question of an attack on a person with several records.
QUESTION_OF_PERSON: dict[Neighboring, str] = {
    "add_remove": "whether the records of one person were in the data",
    "zero_out": "whether the records of one person were in the data, or nothing in their place",
    "replace_one": "which of two possible sets of records of one person was in the data",
}
EVERY_ATTACK = (
    "These bounds hold for every attack, even one that knows the person and all other records. All are rounded up."
)
#: Rows on the success of attacks. Under replacement the attack tells two records apart, and both persons are present.
FOUND: dict[Neighboring, str] = {
    "add_remove": "finds of the persons in the data, if it wrongly accuses {:g} % of the others",
    "zero_out": "finds of the persons in the data, if it wrongly accuses {:g} % of the others",
    "replace_one": "recognises the first of two possible records, if it mistakes {:g} % of the second for the first",
}
ADVANTAGE = "has a true positive rate above its false positive rate by (advantage)"
GUESSED = "is right after the release, if its best guess was right with probability {:g} % before"
EVEN: dict[Neighboring, str] = {
    "add_remove": "is right about membership in the data, if half of the persons in question were in it",
    "zero_out": "is right about membership in the data, if half of the persons in question were in it",
    "replace_one": "is right about which of two possible records was used, if both were as likely",
}
CENTRAL = (
    "Central model: one curator holds the original records. All who run the fit, or control the machine or its "
    "workers, see the records and are trusted.",
    "The attacker sees only the release and this statement, and knows the software, all parameters and all records but "
    "those of one person.",
)
FROM_THE_SYSTEM = (
    "Seeds: 256 bits of the operating system's entropy, drawn anew in every fit.",
    "The number of runs, stops, noise of scores and choices, and the coins that split records are drawn exactly, in "
    "integers and fractions, from the operating system.",
    "Noise inside of the model is drawn by the model's own library. We assume that its generator cannot be predicted "
    "from the release.",
)
FROM_A_KEPT_SECRET = (
    "One secret of 256 bits of the operating system's entropy, drawn anew in every fit and kept in its checkpoint "
    "until the release. Every reader of that folder can undo the noise.",
    "All other randomness follows from the secret through statistical generators. We assume that they cannot be "
    "predicted from the release.",
)
FROM_A_SEED = (
    "A known seed was used, which is for tests: against an attacker who knows the seed nothing is promised, in spite "
    "of the numbers here.",
)
UNKNOWN_SOURCE = ("Not stated by the author of this statement. Known facts are under “What the statement rests on”.",)
SMALLEST = "ε is the smallest of several proved bounds on the whole privacy profile. The one that gave it stands first."
COMPOSED = "ε is read from the privacy profile of all parts together."
TUNED = (
    "Yes. Every choice made by looking at the records, the hyperparameters included, is counted in the total. Losing "
    "candidates and all else that is not released stay secret."
)
NOT_TUNED = (
    "No. This statement knows of no choice of hyperparameters. If others were tried on the same records, each training "
    "has a cost of its own, which is not in the total."
)
#: Facts that no statement protects, under any relation.
NEVER_PROTECTED = (
    "How long the fit took, and what else can be measured from outside: memory, network, power.",
    "Public facts: bounds, classes, the schema of the table and the types of its columns, the candidates to choose "
    "from, and all other parameters of the fit.",
    "What follows about a person from the records of other people: a fact about a group is no secret of one member.",
    "Other releases from the same records, such as other fits or scores of the model on private records. Their costs "
    "add up.",
    "The records themselves, checkpoints of a search, and all else that stays with the curator.",
)
PUBLIC_NUMBER = "The number of {}: neighbours have the same one."
SEVERAL_RECORDS = (
    "A person with several records: the statement is about one of them. The curator can restate it for all records of "
    "a person, if their largest number is known (in Python: privacy_spent_.for_group(largest_number))."
)
ROUNDING = (
    "Every ε, δ and risk is an upper bound: the accounting overstates the loss, and printed numbers are rounded up."
)
BUDGET = (
    "The budget for these records is ε = {} at δ = {}. All entries so far take ε = {}. A further release with ε = {} "
    "and δ = 0 certainly fits; how much more another mechanism may have, ledger.remaining() tells."
)
DID_IT_FIT = (
    "Values that did not fit the schema (another spelling, outside of a range) counted as unknown, missing or clipped, "
    "and nothing here tells how many. The curator can find out by a small release of its own: "
    "schema_report(table, schema, epsilon=0.1)."
)
NOTHING_PROMISED = "Nothing is promised: ε is infinite. The release may reveal single records in full."
RESTS_ON = "All of this holds only under what is listed below “What the statement rests on”."
#: Further ones, which are shown where they are given: the registry of deployments asks for them.
REGISTRY = ("Name", "Region", "Sector", "Sources", "Author of this entry")
#: Facts that only the curator knows: deployment registries and data-protection officers ask for them.
CURATOR = (
    "Curator",
    "Data set, and who is in it",
    "Intended use of the release",
    "Who gets the release",
    "Why this ε and δ",
    "Contact",
)


#: Most different parts that are named.
MOST = 4


def in_words(guarantee: Guarantee) -> str:
    """Mechanism of a guarantee; losses are rounded up, and noise is rounded down."""
    found = WORDS.get(type(guarantee).__name__)
    return f"a mechanism with a {type(guarantee).__name__} guarantee" if found is None else found(guarantee)


def _all_of(parts: Sequence[Guarantee]) -> str:
    """Parts, equal ones together: at most ``MOST`` different ones."""
    counted = Counter(map(in_words, parts))
    named = [text if number == 1 else f"{number} × ({text})" for text, number in counted.items()]
    more = f"; and {len(named) - MOST} more" if len(named) > MOST else ""
    return "; ".join(named[:MOST]) + more


def _best_of(one: Any) -> str:
    return f"best of K runs, with K drawn from {one.count!r}; each run: {in_words(one.one_run)}"


def _subset(one: Any) -> str:
    part = "all records" if one.train_on == "all" else "the rest"
    words = (
        f"tuning on a random share of {100 * one.fraction:.4g} % of the records ({in_words(one.tune)}), then a "
        f"training on {part} ({in_words(one.train)})"
    )
    if one.validate is None:
        return words
    return f"{words}; scores on a random {100 * one.share:.4g} % of the rest ({in_words(one.validate)})"


#: Class of a guarantee ↦ words. By name: the modules of searches import this package.
WORDS: dict[str, Callable[[Any], str]] = {
    "ApproxDP": lambda one: f"any mechanism with ε = {short_up(one.epsilon)} at δ = {short_up(one.delta)}",
    "PureDP": lambda one: f"any mechanism with ε = {short_up(one.epsilon)} at δ = 0",
    "LaplaceDP": lambda one: f"Laplace noise with ε = {short_up(one.epsilon)}",
    "BoundedRangeDP": lambda one: f"exponential mechanism with ε = {short_up(one.epsilon)}",
    "ZCDP": lambda one: f"any mechanism with zero-concentrated ρ = {short_up(one.rho)}",
    "GaussianDP": lambda one: f"Gaussian noise with μ = {short_up(one.mu)} (sensitivity ÷ standard deviation)",
    "RenyiDP": lambda one: f"any mechanism with a Rényi curve, known at {len(one.orders)} orders",
    "DPSGD": lambda one: (
        f"DP-SGD: noise of {short_down(one.noise_multiplier)} clipping norms, sampling rate "
        f"{short_up(one.sample_rate)}, {one.steps} steps"
    ),
    "ProfileDP": lambda one: "any mechanism with a known privacy profile",
    "NonPrivate": lambda one: "a mechanism without a guarantee",
    "Composition": lambda one: f"released together: {_all_of(one.parts)}",
    "Mixture": lambda one: f"one of these at random: {_all_of(one.parts)}",
    "Envelope": lambda one: f"one of these, whichever it is: {_all_of(one.parts)}",
    "ChangedRecord": lambda one: f"{in_words(one.presence)}, for a record that is replaced",
    "OfGroup": lambda one: f"{in_words(one.one_record)}, for {one.records} records at once",
    "BestOf": _best_of,
    "UntilAbove": lambda one: (
        f"runs until a private score reaches the threshold, or with probability {one.stop_probability:.4g} before each "
        f"run; each run: {in_words(one.one_run)}"
    ),
    "SubsetThenTrain": _subset,
    "DoublingWalk": lambda one: (
        f"doubling walk of at most {one.max_rounds} rounds, each with ε = {short_up(one.round_epsilon)}"
    ),
}
