"""What can go wrong with the watching itself: a source tells nothing, or Hero did not look. Says nothing of the run."""

from datetime import timedelta

from pydantic import AwareDatetime, Field

from bot.model.contract import Contract
from bot.model.durations import say_duration
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, Pass, Severity, UnknownVerdict, Verdict
from checks.check import Check
from checks.thresholds import Thresholds

STALE_ID = CheckId("monitor.stale")

SLEPT = "slept"
"""The key of the finding that Hero itself did not look for a while."""

_WATCHED: tuple[Source, ...] = tuple(source for source in Source if source is not Source.HANG)
"""What is read at every look; what is on record of a hang is read during one alone, and says itself what it lacks."""

_DEFAULT_CADENCE = timedelta(minutes=15)
"""The procedure's own, for a contract that names none and was handed in as it was."""


class Sight(Value):
    """Since when each source tells nothing, and when Hero last looked."""

    dark_since: dict[Source, AwareDatetime] = {}
    looked_at: AwareDatetime | None = None
    told: tuple[Source, ...] = ()
    """Which were stale in this outage, all together: one that is back before the others is no end of it."""


class StaleThresholds(Thresholds):
    cadences: float = Field(default=2, ge=1)
    """A source may be dark, and Hero may not look, for so many of the run's check cadences. The procedure's "Silent
    monitor failure"; one missed look is everyday."""


def stale(seen: Snapshot, contract: Contract, limits: StaleThresholds, memory: Sight) -> tuple[Verdict, Sight]:
    """Fail when a source has told nothing new for too long, or when the looks themselves came too far apart."""
    limit = (contract.cadence.check or _DEFAULT_CADENCE) * limits.cadences
    readings = {source: seen.reading(source) for source in _WATCHED}
    asked = {
        source: reading
        for source, reading in readings.items()
        if not (isinstance(reading, Unknown) and reading.reason in {Gap.NOT_CONFIGURED, Gap.NOT_YET})
    }
    slept = seen.at - memory.looked_at if memory.looked_at else timedelta()
    dark = {
        source: memory.dark_since.get(source, seen.at) if isinstance(reading, Unknown) else reading.at
        for source, reading in asked.items()
        if isinstance(reading, Unknown) or seen.at - reading.at > limit
    }
    before, memory = memory, Sight(dark_since=dark, looked_at=seen.at)
    stale_sources = [source for source in Source if source in dark and seen.at - dark[source] > limit]
    if stale_sources:
        told = tuple(source for source in Source if source in {*before.told, *stale_sources})
        finding = _dark_finding(stale_sources, dark, seen, limit, key=",".join(told))
        return Fail(finding=finding), memory.model_copy(update={"told": told})
    if slept > limit and before.looked_at is not None:
        return Fail(finding=_slept_finding(before.looked_at, slept, seen, limit)), memory
    gap = next((reading for reading in asked.values() if isinstance(reading, Unknown)), None)
    if gap is not None:
        return UnknownVerdict(reason=gap.reason, detail=gap.detail), memory
    if not asked:
        return UnknownVerdict(reason=Gap.NOT_CONFIGURED, detail="no source of this run is configured"), memory
    return Pass(), memory


def _dark_finding(
    stale_sources: list[Source], dark: dict[Source, AwareDatetime], seen: Snapshot, limit: timedelta, *, key: str
) -> Finding:
    since = min(dark[source] for source in stale_sources)
    names = ", ".join(stale_sources)
    return Finding(
        check=STALE_ID,
        key=key,
        severity=Severity.WARNING,
        summary=f"Hero cannot see {names} of this run since {since:%Y-%m-%d %H:%M} UTC "
        f"({say_duration(seen.at - since)}, limit {say_duration(limit)}); this says nothing about the run itself",
        evidence=tuple(_why(source, dark[source], seen) for source in stale_sources),
        advice="Look at the run by other means until this is mended; `hero doctor` names the connection and its fix.",
        since_at=since,
    )


def _why(source: Source, since: AwareDatetime, seen: Snapshot) -> str:
    match seen.reading(source):
        case Unknown(reason=reason, detail=detail):
            return f"{source}: {reason}, {detail[:300]} (since {since:%H:%M} UTC)"
        case Known(at=at):
            return f"{source}: the newest answer is of {at:%Y-%m-%d %H:%M} UTC"


def _slept_finding(looked_at: AwareDatetime, slept: timedelta, seen: Snapshot, limit: timedelta) -> Finding:
    return Finding(
        check=STALE_ID,
        key=SLEPT,
        severity=Severity.WARNING,
        summary=f"Hero did not look at this run for {say_duration(slept)} (limit {say_duration(limit)}), from "
        f"{looked_at:%Y-%m-%d %H:%M} to {seen.at:%Y-%m-%d %H:%M} UTC; this says nothing about the run itself",
        evidence=("the looks themselves came too far apart: the host was asleep, stopped or overloaded, or paused",),
        advice="What happened meanwhile is judged from what can be read now. Give Hero a host that stays awake, and a "
        "heartbeat that notices from outside.",
        since_at=looked_at,
    )


STALE = Check(
    id=STALE_ID,
    title="Hero cannot see the run",
    severity=Severity.WARNING,
    needs=_WATCHED,
    source='manage-hero-run, "What Can Go Wrong": silent monitor failure',
    thresholds=StaleThresholds(),
    memory=Sight(),
    judge=stale,
)
