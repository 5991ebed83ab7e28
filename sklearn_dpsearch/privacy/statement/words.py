"""The sentences of a statement that are the same for every fit of a kind."""

from __future__ import annotations

from .._types import Neighboring

#: Relation ↦ how neighbours differ, for what is called {one}, and what is known of the number of records.
NEIGHBOURS: dict[Neighboring, tuple[str, str]] = {
    "add_remove": (
        "Two data sets are neighbours if one of them has {one} more than the other.",
        "private",
    ),
    "zero_out": (
        "Two data sets are neighbours if {one} of one of them is replaced by nothing in the other, in the same place.",
        "public",
    ),
    "replace_one": (
        "Two data sets are neighbours if {one} of one of them is replaced by anything in the other.",
        "public",
    ),
}
#: Relation ↦ what an attack tries to find out.
QUESTION: dict[Neighboring, str] = {
    "add_remove": "whether the record of one person was in the data",
    "zero_out": "whether the record of one person was in the data, or nothing in its place",
    "replace_one": "which of two possible records of one person was in the data",
}
#: The same, where a person has several records.
QUESTION_OF_PERSON: dict[Neighboring, str] = {
    "add_remove": "whether the records of one person were in the data",
    "zero_out": "whether the records of one person were in the data, or nothing in their place",
    "replace_one": "which of two possible sets of records of one person was in the data",
}
EVERY_ATTACK = (
    "These bounds hold for every attack, whatever it knows about the person and about all other records. All are "
    "rounded up."
)
#: Rows of what attacks can do; where a record is replaced, they are about two records, and nobody is absent.
FOUND: dict[Neighboring, str] = {
    "add_remove": "finds of those who were in the data, if it wrongly accuses {:g} % of those who were not",
    "zero_out": "finds of those who were in the data, if it wrongly accuses {:g} % of those who were not",
    "replace_one": "recognises the first of two possible records, if it takes {:g} % of the second ones for it",
}
ADVANTAGE = "has a true positive rate above its false positive rate by (advantage)"
GUESSED = "is right after the release with what it guessed rightly with probability {:g} % before"
EVEN: dict[Neighboring, str] = {
    "add_remove": "is right about who was in the data, if half of those in question were",
    "zero_out": "is right about who was in the data, if half of those in question were",
    "replace_one": "is right about which of two possible records it was, if both were as likely",
}
CENTRAL = (
    "Central model: one curator has the records as they are. Whoever runs the fit, and whoever controls the machine or "
    "its workers, sees them and is trusted.",
    "The attacker sees the release and this statement, knows the software, all parameters and all records but those of "
    "one person, and nothing else.",
)
FROM_THE_SYSTEM = (
    "Seeds: 256 bits of the operating system's entropy, drawn anew in every fit.",
    "The number of runs, stops, noise of scores and choices, and the coins that split records are drawn exactly, in "
    "integers and fractions, from the operating system.",
    "Noise inside of the model is drawn by the model's own library. That nobody predicts its generator from the "
    "release is an assumption.",
)
FROM_A_KEPT_SECRET = (
    "One secret of 256 bits of the operating system's entropy, drawn anew in every fit and kept in its checkpoint "
    "until the release. Whoever reads that folder can undo the noise.",
    "All else follows from it through statistical generators. That nobody predicts them from the release is an "
    "assumption.",
)
FROM_A_SEED = (
    "A known seed was used, which is for tests: towards everyone who knows it nothing is promised, whatever the "
    "numbers here say.",
)
UNKNOWN_SOURCE = ("Not stated by whoever made this statement. What is known stands under what it rests on.",)
SMALLEST = "ε is the smallest of several proved bounds on the whole privacy profile. The one that gave it stands first."
COMPOSED = "ε is read from the privacy profile of all parts together."
TUNED = (
    "Yes. Whatever was chosen by looking at the records, the hyperparameters included, is counted in the total. What "
    "is not released, such as losing candidates, stays secret."
)
NOT_TUNED = (
    "No. This statement knows of no choice of hyperparameters. If others were tried on the same records, each training "
    "has a cost of its own, which is not in the total."
)
#: What no statement protects, whatever the relation.
NEVER_PROTECTED = (
    "How long the fit took, and what else can be measured from outside: memory, network, power.",
    "Public facts: bounds, classes, the schema of the table and the types of its columns, the candidates to choose "
    "from, and all other parameters of the fit.",
    "What follows about a person from the records of other people: a fact about a group is no secret of one member.",
    "Other releases from the same records, such as other fits or scores of the model on private records. Their costs "
    "add up.",
    "The records themselves, checkpoints of a training, and whatever else stays with the curator.",
)
PUBLIC_NUMBER = "The number of records: neighbours have the same one."
SEVERAL_RECORDS = "A person with several records: the statement is about one. For m of them: for_person(m)."
ROUNDING = (
    "Every ε, δ and risk is an upper bound: the accounting errs on the side of more loss, and so does the rounding of "
    "what is printed here."
)
NOTHING_PROMISED = "Nothing is promised: ε is infinite. The release may reveal single records in full."
RESTS_ON = "All of this holds only under what is listed below “What the statement rests on”."
#: What only the curator can say: deployment registries and data-protection officers ask for it.
CURATOR = (
    "Curator",
    "Data set, and who is in it",
    "Intended use of the release",
    "Who gets the release",
    "Why this ε and δ",
    "Contact",
)
