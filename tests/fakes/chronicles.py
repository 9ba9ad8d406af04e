"""Records of runs for tests: a short life of a run, and the entries that it makes."""

from datetime import datetime, timedelta

from bot.model.chronicle import (
    ActionEnded,
    Asked,
    Change,
    Decided,
    Entry,
    Fact,
    Failed,
    HandedOver,
    Happening,
    Launched,
    MilestoneReached,
    RetentionChanged,
    StepEnded,
    TrackerSeen,
    next_entry,
)
from bot.model.contract import Basis
from bot.model.value import JobId, PersonName, RunId
from tests.fakes.clock import START

JOB = JobId("/me/hero-coord")
LIFE: tuple[Happening, ...] = (
    Launched(
        instance=0,
        job_id=JOB,
        is_by_hero=False,
        facts=(
            Fact(label="kind", value="production", basis=Basis.INFERRED),
            Fact(label="command", value="iris job run --no-wait -- python -m train | tee", basis=Basis.STATED),
            Fact(label="source SHA", value="0" * 40, basis=Basis.STATED),
            Fact(label="working tree", value=None),
        ),
    ),
    TrackerSeen(url="https://wandb.ai/acme/hero/runs/h1", id="h1", name="hero <!-- hero:record-end=x --> @dri"),
    MilestoneReached(step=5_000, checkpoint_step=4_800),
    Failed(incident=1, check="job.ended", severity="critical", summary="exit code 137", step=8_123, crash="oom_host"),
    Asked(request=7, plan="relaunch", digest="1" * 64, dri=PersonName("ada"), reason="exit code 137"),
    Decided(request=7, outcome="granted", digest="1" * 64, by=PersonName("ada"), via="slack:C0:1.0"),
    StepEnded(action=3, step="submit", outcome="done", detail=JOB),
    Launched(instance=1, job_id=JOB, is_by_hero=True, facts=(Fact(label="DRI", value="ada", basis=Basis.STATED),)),
    ActionEnded(action=3, request=7, plan="relaunch", outcome="done", job_id=JOB, from_step=8_000),
    RetentionChanged(changes=(Change(field="retention", before="1", after="2"),)),
    HandedOver(changes=(Change(field="owner", before="not set", after="bob"),)),
)


def entries_of(run_id: RunId, happened: tuple[Happening, ...] = LIFE, start: datetime = START) -> list[Entry]:
    """Return the record that these happenings make, a minute apart."""
    entries: list[Entry] = []
    for place, each in enumerate(happened):
        payload = each.model_dump(mode="json", exclude={"kind"})
        at = start + timedelta(minutes=place)
        entries.append(next_entry(run_id, entries[-1] if entries else None, at, each.kind, payload))
    return entries
