"""From Finelog's newest rows of a run to what its trainer last said of itself. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.errors import UnrecognisedError
from bot.model.telemetry import Phase, Telemetry
from bot.model.value import Value
from bot.sources.finelog.executions import Executions
from bot.sources.finelog.failure import SERVICE
from bot.sources.finelog.rows import STEP, execution_of, moment_of, name_of
from bot.sources.finelog.tables import Form
from bot.sources.metric_rows import parse_figure, parse_moment, parse_step

_PHASES = {0.0: Phase.INITIALIZING, 1.0: Phase.TRAINING, 2.0: Phase.FINISHED}


class _Sign(Value):
    """One row."""

    seq: int
    at: datetime | None
    name: str
    value: float | None
    step: int | None
    execution: str
    job_id: str


def parse_signs(rows: tuple[Mapping[str, Any], ...], form: Form, executions: Executions) -> Telemetry:
    """Return the newest signs of life of whoever wrote the newest row; those of others are older news.

    Raises:
        UnrecognisedError: a phase that is not known, or a row without number or time.
    """
    signs = sorted((_sign(raw, form) for raw in rows), key=lambda sign: sign.seq)
    if not signs:
        return Telemetry()
    newest = signs[-1]
    signs = [sign for sign in signs if sign.execution == newest.execution]
    phase, phase_at = _phase(signs)
    return Telemetry(
        phase=phase,
        phase_at=phase_at,
        progress_at=_progress(signs),
        last_step=next((sign.step for sign in reversed(signs) if sign.step is not None), None),
        last_row_at=max((sign.at for sign in signs if sign.at is not None), default=None),
        execution_uid=newest.execution,
        is_of_current_execution=executions.is_current(newest.execution),
        job_id=newest.job_id,
    )


def _sign(raw: Mapping[str, Any], form: Form) -> _Sign:
    seq, at, job_id = raw.get("seq"), moment_of(raw.get("timestamp_ms")), raw.get("job_id")
    if not isinstance(seq, int) or at is None:
        shown = f"seq {raw.get('seq')!r}, timestamp_ms {raw.get('timestamp_ms')!r}"[:200]
        raise UnrecognisedError(SERVICE, f"a row has no number or no time: {shown}")
    name, value = name_of(raw, form), parse_figure(raw.get("value"))
    step = parse_step(value) if form is Form.GAUGES and name == STEP else parse_step(raw.get("step"))
    return _Sign(
        seq=seq,
        at=at,
        name=name,
        value=value,
        step=step,
        execution=execution_of(raw),
        job_id=job_id if isinstance(job_id, str) else "",
    )


def _phase(signs: list[_Sign]) -> tuple[Phase | None, datetime | None]:
    newest = next((sign for sign in reversed(signs) if sign.name == "phase"), None)
    if newest is None:
        return None, None
    phase = _PHASES.get(newest.value) if newest.value is not None else None
    if phase is None:
        raise UnrecognisedError(SERVICE, f"phase is {newest.value!r}, and 0, 1 and 2 are those that Hero knows")
    return phase, newest.at


def _progress(signs: list[_Sign]) -> datetime | None:
    """Return when the last step ended; None while the trainer says 0, which it does before its first one."""
    newest = next((sign for sign in reversed(signs) if sign.name == "progress_time_seconds"), None)
    return parse_moment(newest.value) if newest is not None and newest.value else None
