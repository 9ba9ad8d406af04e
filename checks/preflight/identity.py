"""What a launch calls its own: job, output, checkpoints, sessions. No other run, live or past, may have the same."""

from collections.abc import Iterator

from bot.model.contract import Basis, Contract
from bot.model.places import normalised, overlaps, places_of
from bot.model.preflight import OtherRun, PreflightFinding, Preparation, Weight
from bot.model.reading import Unknown
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, stated, unseen

_SHARED = frozenset({"export_root", "traces_root"})
"""Fields that several runs may mean to share, if their owner says so."""
_NAMED = 3
"""So many of the runs that have a place are named, those that live first."""


def judge(prepared: Preparation) -> Told:
    """Print the identities and refuse one that another run has."""
    contract = prepared.contract
    values = [stated("run_id", contract.run_id), stated("job_id", prepared.planned_job, Basis.INFERRED)]
    values.append(stated("output_root", contract.output_root, contract.basis_of("output_root")))
    findings = (*_of_job(prepared), *_of_others_jobs(prepared), *_of_others_places(prepared))
    return Told(values=tuple(values), findings=findings)


def _of_job(prepared: Preparation) -> Iterator[PreflightFinding]:
    job_id = prepared.planned_job
    if job_id is None:
        return
    if isinstance(prepared.planned, Unknown):
        yield unseen(IDENTITY.id, prepared.planned, f"whether the job {job_id} exists already")
        return
    job = next((each for each in prepared.planned.value if each.job_id == job_id), None)
    if job is None:
        return
    is_own = prepared.seen.job is not None and prepared.seen.job.job_id == job_id and not prepared.is_first
    another = f"another --job-name in `command` of runs/{prepared.contract.run_id}.toml"
    if not job.state.is_terminal and not is_own:
        yield IDENTITY.finding(
            Weight.BLOCKS,
            f"the job {job_id} lives already: it is {job.state} (measured)",
            f"name {another}; or let Hero watch that job, and ask for a relaunch",
        )
    elif job.state.is_terminal and prepared.is_first:
        yield IDENTITY.finding(
            Weight.ASKS,
            f"the name {job_id} was used before, by a job that is {job.state} (measured)",
            f"name {another}, or have the DRI accept that it is used again",
        )


def _of_others_jobs(prepared: Preparation) -> Iterator[PreflightFinding]:
    for other in prepared.others:
        if prepared.planned_job is not None and prepared.planned_job in other.jobs:
            yield IDENTITY.finding(
                Weight.BLOCKS,
                f"the job {prepared.planned_job} belongs to {other.run_id} ({_lives(other)})",
                f"name another --job-name, and [orchestrator] job_id, in runs/{prepared.contract.run_id}.toml",
            )


def _of_others_places(prepared: Preparation) -> Iterator[PreflightFinding]:
    """Yield one finding a place, whoever and however many have it: it is mended at one line."""
    contract = prepared.contract
    for field, place in _named_places(contract):
        having = [
            f"{other.run_id} ({_lives(other)}) has {theirs}"
            for other in sorted(prepared.others, key=lambda each: not each.is_live)
            if (theirs := next((each for each in sorted(other.places) if overlaps(place, each)), None)) is not None
        ]
        if not having:
            continue
        weight = Weight.BLOCKS
        if field in _SHARED:
            weight = Weight.ASKS if prepared.is_first else Weight.NOTE
        more = f"; and {len(having) - _NAMED} more" if len(having) > _NAMED else ""
        said = f"{field} = {place} ({contract.basis_of(field)})"
        yield IDENTITY.finding(
            weight,
            f"{said} is not this run's alone: {'; '.join(having[:_NAMED])}{more}",
            f"give this run its own {field} in runs/{contract.run_id}.toml",
        )


def _lives(other: OtherRun) -> str:
    return "live" if other.is_live else "past or planned"


def _named_places(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield each place with the first field that names it; what lies below the output root is that one's."""
    told: set[str] = set()
    output = normalised(contract.output_root, contract.checkout)
    for field, place in places_of(contract):
        is_within = field != "output_root" and overlaps(output, place) and len(place) >= len(output)
        if place not in told and not is_within:
            told.add(place)
            yield field, place


IDENTITY = Item(
    id=CheckId("launch.identity"),
    title="Job, output, checkpoints and sessions that no other run has",
    source='manage-hero-run, "Launch": choose unique job, run, output, checkpoint, and rendezvous identities',
    judge=judge,
)
