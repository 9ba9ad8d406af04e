"""What the doctor asks of git: is it there and new enough, and can the checkout of each run be read?"""

import asyncio
import re

from bot.clock import Clock
from bot.commands.probing import Probe, bad, good
from bot.errors import ServiceError
from bot.model.contract import Contract
from bot.model.reading import Gap, Unknown
from bot.settings import GitSettings
from bot.sources.git.program import Git, Left
from bot.sources.git.source import GitSource

_OLDEST = (2, 31)


async def probe_git(settings: GitSettings, contracts: tuple[Contract, ...], clock: Clock) -> tuple[Probe, ...]:
    """Ask git for its version, and look at the checkout of every run whose contract names a commit."""
    named = tuple(each for each in contracts if each.source_sha is not None)
    try:
        version = await Git(settings.program).version(Left(clock, settings.deadline))
    except ServiceError as error:
        detail, _, fix = error.detail.partition("; ")
        return (bad("git", detail, fix),) if named else (good("git", f"{detail}, and no run names a source_sha"),)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
        return (bad("git", f"it is version {version}", "install git 2.31 or newer, or set [git] program"),)
    source = GitSource(settings, clock)
    runs = await asyncio.gather(*(_ask_run(source, each) for each in named))
    return (good("git", f"version {version}"), *runs)


async def _ask_run(source: GitSource, contract: Contract) -> Probe:
    name = f"git {contract.run_id}"
    reading = await source.code(contract)
    if isinstance(reading, Unknown):
        detail, _, fix = reading.detail.partition("; ")
        is_late = reading.reason is Gap.TIMEOUT
        return bad(name, detail, fix or ("raise [git] deadline" if is_late else "see that git works in the checkout"))
    state = reading.value
    if state.source_fault is not None:
        return bad(name, state.source_fault.detail, state.source_fault.fix)
    seen = f"{state.directory} is at {state.head[:12]}, {len(state.dirty)} paths differ, {state.upstream}"
    if state.fetch_fault:
        detail, _, fix = state.fetch_fault.partition("; ")
        return good(name, f"{seen} could not be fetched: {detail}", fix)
    return good(name, f"{seen} was fetched" if state.fetched_at else f"{seen} is not fetched, as [git] says")
