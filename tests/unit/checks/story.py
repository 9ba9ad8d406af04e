"""Tells a check a story: one snapshot after the other, the memory stored as JSON in between, as live."""

from collections.abc import Iterable
from typing import Any

from bot.model.contract import Contract
from bot.model.snapshot import Snapshot
from bot.model.verdict import Fail, Finding, Verdict
from checks.check import Check, judge_all
from tests.fakes.snapshots import contract


def verdicts(check: Check[Any, Any], story: Iterable[Snapshot], promised: Contract | None = None) -> list[Verdict]:
    """Return the check's verdict after each snapshot; a check that raises fails the test with its traceback."""
    memories: dict[Any, str] = {}
    found: list[Verdict] = []
    for seen in story:
        judged = judge_all((check,), seen, promised or contract(), memories)
        assert not judged.broken, judged.broken[0].trace
        memories = judged.memories
        found.append(judged.judgements[0].verdict)
    return found


def verdict(check: Check[Any, Any], *story: Snapshot, promised: Contract | None = None) -> Verdict:
    """Return the check's verdict after the last snapshot."""
    return verdicts(check, story, promised)[-1]


def finding(check: Check[Any, Any], *story: Snapshot, promised: Contract | None = None) -> Finding:
    """Return the finding after the last snapshot; that there is one is asserted."""
    last = verdict(check, *story, promised=promised)
    assert isinstance(last, Fail), last
    return last.finding
