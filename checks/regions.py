"""What can go wrong with where a run saves: the bucket lies in another region than the machines.

Regions are read from names, so only what is recognised in both is judged: a Google or Amazon region within a bucket's
name, and the zone or region that the command asks for.
"""

import re
from collections.abc import Iterator

from bot.model.contract import Contract
from bot.model.reading import Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import unseen
from checks.thresholds import NoMemory, NoThresholds

REGION_ID = CheckId("checkpoint.region")

_REGION = re.compile(
    r"(?<![a-z0-9])((?:us|europe|asia|australia|northamerica|southamerica|me|africa|eu|ap|ca|sa|af)-"
    r"(?:north|south|east|west|central|northeast|northwest|southeast|southwest)(?:-?\d{1,2}))(?:-?[a-z])?(?![a-z0-9])",
    re.IGNORECASE,
)
_BUCKET = re.compile(r"(?:gs|s3)://([^/]+)")
_OPTION = re.compile(r"--(?:zone|region)(?:=(.+))?", re.IGNORECASE)


class Crossing(Value):
    """A root that lies in another region than the machines."""

    root: str
    bucket_region: str
    machine_region: str


def machine_regions(command: tuple[str, ...]) -> frozenset[str]:
    """Return the regions of the zones that a submit command asks for; empty when it names none that is known."""
    found: set[str] = set()
    for number, word in enumerate(command):
        option = _OPTION.fullmatch(word)
        if option is None:
            continue
        given = option[1] or (command[number + 1] if number + 1 < len(command) else "")
        for each in given.split(","):
            region = region_in(each.strip())
            if region:
                found.add(region)
    return frozenset(found)


def region_in(name: str) -> str:
    """Return the region within a zone's or bucket's name, ``us-east5`` of ``us-east5-a``; empty when there is none."""
    found = {match[1].lower() for match in _REGION.finditer(name)}
    return found.pop() if len(found) == 1 else ""


def placed_roots(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield every root of the contract whose bucket's name tells its region, with it."""
    given = (*contract.roots, contract.output_root, contract.export_root or "")
    for root in dict.fromkeys(given):
        bucket = _BUCKET.match(root)
        if bucket and (region := region_in(bucket[1])):
            yield root, region


def crossings(contract: Contract) -> tuple[Crossing, ...]:
    """Return the roots that are in another region than every machine that the command asks for."""
    machines = machine_regions(contract.command)
    if not machines:
        return ()
    return tuple(
        Crossing(root=root, bucket_region=region, machine_region=", ".join(sorted(machines)))
        for root, region in placed_roots(contract)
        if region not in machines
    )


def region(seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: NoMemory) -> tuple[Verdict, NoMemory]:
    """Fail while a job lives that saves into another region than it asks machines in."""
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the job lives is not known"), memory
    if seen.job is None or seen.job.state.is_terminal:
        return NotApplicable(reason="there is no live job"), memory
    if not machine_regions(contract.command) or not any(placed_roots(contract)):
        return NotApplicable(reason="the command's zone or the bucket's region is not told by its name"), memory
    found = crossings(contract)
    if not found:
        return Pass(), memory
    return Fail(finding=_finding(found, seen)), memory


def say_crossing(crossing: Crossing) -> str:
    return f"{crossing.root} is in {crossing.bucket_region}, the command asks for machines in {crossing.machine_region}"


def _finding(found: tuple[Crossing, ...], seen: Snapshot) -> Finding:
    one = found[0]
    return Finding(
        check=REGION_ID,
        key=seen.job.instance_id if seen.job else "",
        severity=Severity.WARNING,
        summary=f"the run saves into {one.bucket_region} from machines in {one.machine_region}",
        evidence=tuple(say_crossing(each) for each in found),
        advice="Saves and restores across regions are slow and cost money. Compare zone and bucket with the contract; "
        "move the one or the other at the next launch, if the DRI agrees.",
    )


REGION = Check(
    id=REGION_ID,
    title="The checkpoints are in another region than the machines",
    severity=Severity.WARNING,
    needs=(Source.JOBS,),
    source='babysit-job, "MarinFold-specific signals": cross-region latency; manage-hero-run, "What Can Go Wrong": '
    "wrong output path, wrong region",
    thresholds=NoThresholds(),
    memory=NoMemory(),
    judge=region,
)
