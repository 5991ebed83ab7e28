"""Lower bounds on ε: what an attacker certainly learns from any private estimator or search, by fitting it many times.

An audit can refute a stated ε, never prove it. It fits on two neighbouring data sets, picks on half of the fits the
event that tells them apart best, and counts on the other half how often it happens.
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
