"""What can go wrong between two launches of a run: the trainer resolved another configuration than the time before."""

from bot.model.contract import Contract
from bot.model.drift import Change, ConfigShape, changes_since, shape_of
from bot.model.launched import LaunchedConfig
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, launched_in
from checks.thresholds import NoThresholds

DRIFT_ID = CheckId("config.drift")

_LINES = 12
_NAMES = 5


class LaunchedBefore(Value):
    """What is remembered of this launch's configuration and of the newest one before it: 14 kB at most."""

    instance: str = ""
    now: ConfigShape | None = None
    """Of this instance; None until it was read."""
    before: ConfigShape | None = None
    """Of the newest instance before it whose configuration was read."""


def drift(
    seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: LaunchedBefore
) -> tuple[Verdict, LaunchedBefore]:
    """Fail when this launch's configuration differs from the one before in more than what was agreed on."""
    current = instance_of(seen, memory.instance)
    if current != memory.instance:
        memory = LaunchedBefore(instance=current, before=memory.now or memory.before)
    config = launched_in(seen, "what this launch resolved is not known")
    if not isinstance(config, LaunchedConfig):
        return config, memory
    memory = memory.model_copy(update={"now": shape_of(config)})
    before = memory.before
    if before is None:
        return NotApplicable(reason="there is no launch before this one whose configuration was read"), memory
    if before.is_trackers is not config.is_trackers:
        reason = f"the launch before was read from {before.origin}: the tracker's copy and a file can't be compared"
        return NotApplicable(reason=reason), memory
    changes = changes_since(before, config, contract.config.intended)
    unintended = [each for each in changes if not each.is_intended]
    if not unintended:
        return Pass(), memory
    return Fail(finding=_finding(unintended, len(changes) - len(unintended), memory, config.origin)), memory


def _finding(unintended: list[Change], agreed: int, memory: LaunchedBefore, origin: str) -> Finding:
    names = list(dict.fromkeys(each.word or each.key for each in unintended))
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    left = len(unintended) - _LINES
    return Finding(
        check=DRIFT_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"this launch was configured otherwise than the one before: {', '.join(names[:_NAMES])}{more}",
        evidence=(
            *(each.line for each in unintended[:_LINES]),
            *((f"and {left} more",) if left > 0 else ()),
            *((f"{agreed} more differ as agreed on",) if agreed else ()),
            f"read from {origin}",
        ),
        advice="Was it meant? Then name the keys under [config] intended of the contract. If not, stop before more of "
        "the run is trained under it: a relaunch has to be the same run, and a change of the trajectory is a new one.",
    )


DRIFT = Check(
    id=DRIFT_ID,
    title="The launch is configured otherwise than the one before",
    severity=Severity.WARNING,
    needs=(Source.CONFIG, Source.JOBS),
    source='manage-hero-run, "What Can Go Wrong": config drift on relaunch',
    thresholds=NoThresholds(),
    memory=LaunchedBefore(),
    judge=drift,
)
