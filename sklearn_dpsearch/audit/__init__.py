"""Lower bounds on the ε of any private estimator, by many fits, or one with canaries.

An audit can refute a stated ε, never prove it. ``audit`` fits on two neighbouring data sets,
chooses on half of the fits the event that tells the data sets apart best, and counts this event on
the other half. ``audit_one_run`` flips a coin for each of many canaries, and guesses the coins from
one fitted model.
"""

from ._audit_result import AuditResult, lower_bound
from ._auditing import audit
from ._bounds import largest_provable_epsilon, runs_needed
from ._distinguishing_events import Event
from ._neighbours import Neighbours, worst_case
from ._one_run import OneRunResult, audit_one_run
from ._replay import ReplayResult, replay
from ._right_guesses import epsilon_of_guesses

__all__ = [
    "AuditResult", "Event", "Neighbours", "OneRunResult", "ReplayResult", "audit",
    "audit_one_run", "epsilon_of_guesses", "largest_provable_epsilon", "lower_bound", "replay",
    "runs_needed", "worst_case",
]  # fmt: skip
