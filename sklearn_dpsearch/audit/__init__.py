"""Lower bounds on the ε of any private estimator or search, by fitting it many times.

An audit can refute a stated ε, never prove it. It fits on two neighbouring data sets, chooses on half of the fits the
event that tells the data sets apart best, and counts this event on the other half.
"""

from .auditing import audit
from .bounds import largest_provable_epsilon, runs_needed
from .events import Event
from .neighbours import Neighbours, worst_case
from .result import AuditResult, lower_bound

__all__ = [
    "AuditResult",
    "Event",
    "Neighbours",
    "audit",
    "largest_provable_epsilon",
    "lower_bound",
    "runs_needed",
    "worst_case",
]
