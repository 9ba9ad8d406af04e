"""Steps that are trained once more while the tracker, which drops every row up to its highest step, shows none. Pure.

Where figures come from the tracker alone, a replay looks like a stall (field report R22). It is told from one by the
step that another witness sees: the trainer's telemetry, or what it prints. Where neither tells a step, the time that
the replay takes at the run's own pace bounds the patience.
"""

import re
from datetime import datetime, timedelta

from pydantic import AwareDatetime

from bot.model.contract import Contract
from bot.model.reading import Known
from bot.model.snapshot import Snapshot, newest_complete
from bot.model.value import Value
from checks.current import life_began
from checks.kin import own_lines
from checks.tracker import StepSeen, silent_until

TELEMETRY = "telemetry"
_PRINTED = re.compile(r"(?<![\w/.-])(?:global_?step|step|iteration)\W{1,13}(\d{1,12})\b", re.IGNORECASE)
_OF_OTHER_THINGS = re.compile(r"checkpoint|restor|resum|load|sav", re.IGNORECASE)
"""Lines that name a step at which something lies, and not the one that is trained."""
_LINE_CHARS = 2_000
_LONGER = 2
"""A replay may take so many times what its steps took before: evaluations and saves are replayed too."""


class Sign(Value):
    """The newest step that a witness other than the figures has seen trained."""

    step: int
    by: str
    """``telemetry`` or ``log``."""
    at: AwareDatetime
    """When it was seen to move, by Hero's clock as far as it can tell."""


class Replay(Value):
    """A trainer that goes on while the tracker drops its rows."""

    sign: Sign
    until: int
    """The tracker's highest step: it shows rows again beyond it."""


def newer_sign(seen: Snapshot, before: Sign | None) -> Sign | None:
    """Return the newest step by telemetry or log; the one before while neither shows another."""
    found = _told(seen) or _printed(seen)
    if found is None or (before is not None and found.step == before.step):
        return before
    return found


def _told(seen: Snapshot) -> Sign | None:
    if not isinstance(seen.telemetry, Known):
        return None
    said = seen.telemetry.value
    if said.last_step is None or said.progress_at is None or said.is_of_current_execution is False:
        return None
    return Sign(step=said.last_step, by=TELEMETRY, at=min(said.progress_at, seen.at))


def _printed(seen: Snapshot) -> Sign | None:
    for line in reversed(own_lines(seen)):
        text = line.text[:_LINE_CHARS]
        if (found := _PRINTED.search(text)) and not _OF_OTHER_THINGS.search(text):
            return Sign(step=int(found[1]), by="log", at=min(line.at or seen.at, seen.at))
    return None


def replay_of(
    seen: Snapshot, contract: Contract, sign: Sign | None, step: int | None, moved_at: datetime | None
) -> Replay | None:
    """Return the replay that hides behind figures which stand still; None when nothing shows one.

    Args:
        seen: the snapshot.
        contract: of the run.
        sign: the newest step by another witness.
        step: the newest step of the figures.
        moved_at: when they last moved; None when they have not in this instance.
    """
    if sign is None or contract.metrics.file is not None or not isinstance(seen.tracker, Known):
        return None
    began = life_began(seen)
    has_begun_anew = (moved_at is None or (began is not None and moved_at < began)) and (
        began is not None and sign.at >= began
    )
    has_gone_back = step is not None and moved_at is not None and sign.step < step and sign.at > moved_at
    has_gone_back = has_gone_back and sign.by == TELEMETRY  # a log counts other steps too, those of an evaluation
    if not has_begun_anew and not has_gone_back:
        return None
    since = began if has_begun_anew else sign.at
    until = silent_until(seen.tracker.value, since, StepSeen(step=sign.step, at=sign.at))
    return None if until is None else Replay(sign=sign, until=until)


def longest_replay(seen: Snapshot, contract: Contract, step_s: float | None) -> timedelta | None:
    """Return how long a replay may last of which no witness tells a step; None when there is none, or none can say.

    Args:
        seen: the snapshot.
        contract: of the run.
        step_s: seconds that a step of this run takes.
    """
    began = life_began(seen)
    if contract.metrics.file is not None or not isinstance(seen.tracker, Known) or began is None or step_s is None:
        return None
    first = _first_step(seen, began)
    if first is None:
        return None
    until = silent_until(seen.tracker.value, began, StepSeen(step=first, at=seen.at))
    return None if until is None else timedelta(seconds=_LONGER * step_s * (until - first))


def _first_step(seen: Snapshot, began: datetime) -> int | None:
    """Return where the current life most likely began: at its launch's checkpoint, or the newest one saved by then."""
    if isinstance(seen.checkpoints, Known):
        saved = newest_complete(tuple(c for c in seen.checkpoints.value if c.saved_at and c.saved_at <= began))
        if saved is not None:
            return saved.step
    return seen.instance.from_step if seen.instance else None
