"""How long a start-up and a step of a trial's child may take: out of the configuration that is launched. Pure.

Source of the rule: deploy checklist, "Execute the trial": read start-up and step watchdog limits from the resolved
launch configuration; normal compilation is no hang.
"""

from datetime import timedelta

from bot.model.launched import UNSET, LaunchedConfig
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Limits
from bot.model.trial import TrialContract

STARTUP, STEP = "startup_watchdog", "step_watchdog"
_SAYS_NOTHING = frozenset({Gap.NOT_CONFIGURED, Gap.NOT_YET})
"""Gaps of a configuration that is not there; with any other one it may be there, and say something else."""
_SHOWN_CHARS = 80


def limits_of(
    trial: TrialContract,
    *,
    child: Reading[LaunchedConfig],
    coming: Reading[LaunchedConfig | None],
    old: Reading[LaunchedConfig],
) -> Reading[Limits]:
    """Return the limits, each with where it is from.

    The first configuration that is there counts, and no other: the child's as it was launched, that which its command
    launches with, the old run's, of which the source then says so. Where that one states no start-up watchdog, the
    contract's ``startup_limit`` counts. One that is there and cannot be read makes the limits Unknown.

    Args:
        trial: ``[trial]`` of the old run's contract.
        child: the child's launched configuration.
        coming: the configuration that the child's command launches with; Known(None) when its contract names none.
        old: the old run's launched configuration.
    """
    places = (
        (child, ""),
        (coming, ""),
        (old, ", the old run's configuration: the child's own is not known before its launch"),
    )
    for reading, remark in places:
        match reading:
            case Known(value=LaunchedConfig() as config):
                return _of_config(config, remark, trial, reading)
            case Unknown(reason=reason) if reason not in _SAYS_NOTHING:
                return reading
            case _:
                continue
    missing = "no launched configuration is there to read"
    startup, source = _stated(trial, missing)
    return Known(value=Limits(startup=startup, startup_source=source, step=None, step_source=missing), at=old.at)


def _of_config(
    config: LaunchedConfig,
    remark: str,
    trial: TrialContract,
    reading: Known[LaunchedConfig] | Known[LaunchedConfig | None],
) -> Reading[Limits]:
    found: dict[str, tuple[timedelta | None, str]] = {}
    for word, what in ((STARTUP, "start-up"), (STEP, "step")):
        told = config.value(word)
        if told is None or told == UNSET:
            found[word] = (None, f"{config.origin} states no {what} watchdog{remark}")
            continue
        limit = config.duration(word)
        if limit is None:
            detail = f"{config.key(word)} = {told[:_SHOWN_CHARS]} of {config.origin} is no time above zero"
            return Unknown(reason=Gap.UNRECOGNISED, detail=detail[:2000], at=reading.at)
        found[word] = (limit, f"{config.key(word)} of {config.origin}{remark}")
    startup, source = found[STARTUP]
    if startup is None:
        startup, source = _stated(trial, source)
    step, step_source = found[STEP]
    limits = Limits(startup=startup, startup_source=source, step=step, step_source=step_source)
    return Known(value=limits, at=reading.at)


def _stated(trial: TrialContract, missing: str) -> tuple[timedelta | None, str]:
    """Return the contract's own limit, and that nothing that is launched states one."""
    if trial.startup_limit is None:
        return None, f"{missing}, and the contract no [trial] startup_limit"
    return trial.startup_limit, f"[trial] startup_limit of the contract: {missing}"
