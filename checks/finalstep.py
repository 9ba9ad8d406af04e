"""What can go wrong with the end of a run: the final step that the contract names is not the one that it trains to."""

import re

from bot.model.askedsteps import asked_steps
from bot.model.contract import Basis, Contract
from bot.model.reading import Gap, Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import NoThresholds

FINAL_STEP_ID = CheckId("progress.final_step")

_CONFIGURED = re.compile(
    r"(?<![\w.])(?:[\w-]+\.)*[\"']?(?:num_train_steps|train_iters|num-train-steps|train-iters)[\"']?\s*[=:\s]\s*"
    r"(\d[\d_]{0,17})(?![\d.\w])"
)
"""What launched configs call it. Progress bars round, and are never read for it."""


class FinalStep(Value):
    """What this instance has shown of its end."""

    instance: str = ""
    highest: int | None = None
    """Of the rows."""
    configured: int | None = None
    """By the launched config as the log printed it; counts where the resolved one is not read."""
    line: str = ""
    resolved: int | None = None
    """By the launched config itself."""
    key: str = ""
    """Where it says so."""


def final_step(
    seen: Snapshot, contract: Contract, _limits: NoThresholds, memory: FinalStep
) -> tuple[Verdict, FinalStep]:
    """Fail when steps go beyond the contract's final step, or the launched config names another one."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else FinalStep(instance=current)
    memory = _taken_in(seen, memory)
    final = contract.final_step
    if final is not None and (reasons := _reasons(final, contract, memory)):
        return Fail(finding=_finding(reasons, final, contract, memory)), memory
    return _unfailed(seen, contract, memory), memory


def _unfailed(seen: Snapshot, contract: Contract, memory: FinalStep) -> Verdict:
    """Return what is to be said when nothing that was seen contradicts the contract."""
    if isinstance(seen.config, Unknown) and seen.config.reason is not Gap.NOT_CONFIGURED and memory.resolved is None:
        return unseen(seen.config, "what the launched config says is not known")
    for reading, what in ((seen.metrics, "how far the run is"), (seen.log, "what the launched config says")):
        if isinstance(reading, Unknown):
            return unseen(reading, f"{what} is not known")
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "which job the steps are of is not known")
    if contract.final_step is None:
        reason = "the contract names no final step; there is no ETA and no completion"
        if memory.resolved is not None:
            reason = f"the contract names no final step; {memory.key} of the launched config counts: {memory.resolved}"
        return NotApplicable(reason=reason)
    if memory.highest is None and _configured(memory) is None and _stated(contract) is None:
        return NotApplicable(reason="no step and no config was seen yet")
    return Pass()


def _taken_in(seen: Snapshot, memory: FinalStep) -> FinalStep:
    update: dict[str, object] = {}
    if isinstance(seen.metrics, Known) and seen.metrics.value.rows:
        top = max(row.step for row in seen.metrics.value.rows)
        update["highest"] = top if memory.highest is None else max(top, memory.highest)
    if isinstance(seen.config, Known) and (resolved := seen.config.value.count("final_step")) is not None:
        update |= {"resolved": resolved, "key": seen.config.value.key("final_step") or ""}
    if isinstance(seen.log, Known):
        for line in seen.log.value.lines:
            found = _CONFIGURED.search(line.text)
            if found:
                update |= {"configured": int(found[1].replace("_", "")), "line": " ".join(line.text.split())[:200]}
    return memory.model_copy(update=update)


def _configured(memory: FinalStep) -> int | None:
    """Return what the launched config says: what was resolved, and what the log printed only where that is not read."""
    return memory.configured if memory.resolved is None else memory.resolved


def _stated(contract: Contract) -> int | None:
    """Return the number of steps that the command itself asks for."""
    asked = asked_steps(contract.command, contract.config.keys.get("final_step"))
    return asked.steps if asked else None


def _reasons(final: int, contract: Contract, memory: FinalStep) -> list[str]:
    reasons: list[str] = []
    if memory.highest is not None and memory.highest > final:
        reasons.append(f"the run logged step {memory.highest}")
    configured = _configured(memory)
    if configured is not None and not _is_same(configured, final):
        reasons.append(f"the launched config says {configured} steps")
    stated = _stated(contract)
    if stated is not None and not _is_same(stated, final):
        reasons.append(f"the command says {stated} steps")
    return reasons


def _is_same(steps: int, final: int) -> bool:
    """Steps are counted from 0 or from 1."""
    return abs(steps - final) <= 1


def _finding(reasons: list[str], final: int, contract: Contract, memory: FinalStep) -> Finding:
    basis = contract.basis_of("final_step")
    source = contract.final_step_source or "not said"
    is_guess = basis is not Basis.STATED
    return Finding(
        check=FINAL_STEP_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary=f"final-step misunderstanding: the contract's final step is {final}"
        f"{f' ({basis})' if is_guess else ''}, but {reasons[0]}",
        evidence=(
            *reasons[1:],
            f"the contract's final step is from: {source}",
            *((f"launched config: {memory.key} = {memory.resolved}",) if memory.resolved is not None else ()),
            *((f"log: {memory.line}",) if memory.line and memory.resolved is None else ()),
        ),
        advice="Take the final step from the launched config or code, never from a progress bar, and mend the "
        "contract: ETA, completion and the final checkpoint are judged by it.",
        since_step=memory.highest,
    )


FINAL_STEP = Check(
    id=FINAL_STEP_ID,
    title="The final step is not the one that the run trains to",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.LOG, Source.METRICS, Source.CONFIG),
    source='manage-hero-run, "What Can Go Wrong": final-step misunderstanding, and "Launch": final training step',
    thresholds=NoThresholds(),
    memory=FinalStep(),
    judge=final_step,
)
