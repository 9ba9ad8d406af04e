"""All checks that judge a run's snapshot, in the order in which they are listed.

A new check is a pure function in the file of its family, a ``Check`` value below it, and its name here; then
``python -m checks.page`` writes its section of ``docs/checks.md``.
"""

from typing import Any

from checks.accelerator import ACCELERATOR
from checks.artifacts import MISSING as ARTIFACTS_MISSING
from checks.check import Check
from checks.checkpoints import INCOMPLETE
from checks.checkpoints import STALLED as CHECKPOINT_STALLED
from checks.code import LINEAGE
from checks.degraded import DEGRADED
from checks.drift import DRIFT
from checks.finalstep import FINAL_STEP
from checks.handoff import HANDOFF
from checks.job import DUPLICATE, ENDED
from checks.monitor import STALE
from checks.numerics import NONFINITE
from checks.outputs import OUTPUT
from checks.partial import PARTIAL
from checks.pods import CONTRADICT as PODS_CONTRADICT
from checks.pods import DUPLICATE as PODS_DUPLICATE
from checks.progress import STALLED as PROGRESS_STALLED
from checks.progress import STARTUP
from checks.regions import REGION
from checks.repeats import REPEATED
from checks.resume import MISMATCH
from checks.retention import WINDOW
from checks.saverisk import RISK
from checks.saving import SLOW
from checks.series import SERIES_CHECKS
from checks.stray import DIAGNOSTIC
from checks.telemetry import CONTRADICT, DOWN, GONE
from checks.tokenizer import TOKENIZER
from checks.tracker import IDENTITY
from checks.waiting import PENDING

CHECKS: tuple[Check[Any, Any], ...] = (
    ENDED,
    PENDING,
    ACCELERATOR,
    PARTIAL,
    REPEATED,
    DUPLICATE,
    DIAGNOSTIC,
    STARTUP,
    PROGRESS_STALLED,
    FINAL_STEP,
    DRIFT,
    OUTPUT,
    DEGRADED,
    TOKENIZER,
    NONFINITE,
    *SERIES_CHECKS,
    CHECKPOINT_STALLED,
    INCOMPLETE,
    SLOW,
    REGION,
    WINDOW,
    RISK,
    HANDOFF,
    ARTIFACTS_MISSING,
    MISMATCH,
    IDENTITY,
    LINEAGE,
    GONE,
    DOWN,
    CONTRADICT,
    PODS_CONTRADICT,
    PODS_DUPLICATE,
    STALE,
)
