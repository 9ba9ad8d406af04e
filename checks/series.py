"""The checks on training curves, which need nothing but logged rows: what ``hero replay`` runs over a file."""

from typing import Any

from checks.check import Check
from checks.evaluations import REGRESSED
from checks.gradients import EXPLOSION
from checks.loss import SPIKE
from checks.numerics import NONFINITE
from checks.optimizer import SKIPPED
from checks.resume import MISMATCH
from checks.router import COLLAPSE as ROUTER_COLLAPSE
from checks.throughput import COLLAPSE as THROUGHPUT_COLLAPSE

SERIES_CHECKS: tuple[Check[Any, Any], ...] = (
    SPIKE,
    THROUGHPUT_COLLAPSE,
    EXPLOSION,
    ROUTER_COLLAPSE,
    SKIPPED,
    REGRESSED,
)
"""Each judges the newest rows against the run's own past; ``checks.CHECKS`` takes them in this order."""

REPLAY_CHECKS: tuple[Check[Any, Any], ...] = (
    NONFINITE,
    SPIKE,
    THROUGHPUT_COLLAPSE,
    EXPLOSION,
    ROUTER_COLLAPSE,
    SKIPPED,
    REGRESSED,
    MISMATCH,
)
"""In the order in which they judge a replayed file."""
