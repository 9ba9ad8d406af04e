"""The two runs of a trial, read and held against one another: what the conductor asks of them at each look.

All reading of rows is here; the judging is ``checks/trial/``, pure, and off the loop.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from bot.model.agreed_names import with_names
from bot.model.conduct import Stage, Trial
from bot.model.contract import Contract
from bot.model.gate import Gate, parse_gate
from bot.model.incident import Incident
from bot.model.job import Job
from bot.model.reading import Reading, Unknown
from bot.model.series import Figure, History, RunRows
from bot.model.trial import Comparison, Window
from bot.model.trialplan import TrialPlan
from bot.sources.finelog.executions import executions_of
from bot.sources.finelog.tables import EXECUTION_PREFIX
from bot.sources.metric_rows import FIGURES
from bot.sources.ports import RowsSource
from checks.trial.compare import compare
from checks.trial.control import ControlSays, judge_control
from checks.trial.quiet import count_happened
from checks.trial.trajectory import TrajectorySays, judge_trajectory

WIDER = (
    "train_cross_entropy_loss",
    "throughput_mfu",
    "moe_drop_fraction",
    "moe_dropped_assignments",
    "train_router_routing_entropy_mean",
    "train_router_load_balancing_loss",
    "train_router_router_z_loss",
    "train_router_capacity_overflow_rate_mean",
    "memory_peak_bytes",
)
"""What is shown beside the gated figures where the trainer logs it (deploy checklist, "Execute the trial", item 4)."""


def gates_of(plan: TrialPlan) -> tuple[Gate, ...]:
    """Return the gates that were agreed."""
    return tuple(parse_gate(line) for line in plan.gates)


def window_of(plan: TrialPlan) -> Window:
    """Return the matched window: the steps from the handoff's on."""
    return Window(first_step=plan.window_first, steps=plan.window_steps)


def figures_of(plan: TrialPlan, contract: Contract) -> tuple[str, ...]:
    """Return the figures that are read: the gated ones, what the contract names, and the wider context."""
    gated = tuple(gate.metric for gate in gates_of(plan))
    return tuple(dict.fromkeys((*gated, *FIGURES, *contract.metrics.others, *WIDER)))


@dataclass(frozen=True)
class Compared:
    """One look at both runs."""

    control: RunRows
    child: RunRows
    found: Comparison
    is_past_window: bool
    """Whether the child has logged a step beyond the window."""


class Comparer:
    """Reads the rows of both runs and judges them."""

    def __init__(self, rows: RowsSource) -> None:
        self._rows = rows

    async def control(self, contract: Contract, plan: TrialPlan, jobs: Reading[tuple[Job, ...]]) -> ControlSays | None:
        """Judge whether the old run has logged the whole window; None when its rows could not be read."""
        rows = await self.rows_of(contract, plan, wider=0)
        if isinstance(rows, Unknown):
            return None
        current = executions_of(jobs)
        known = current.all if current.is_exact else None
        return await asyncio.to_thread(judge_control, rows.value, plan, executions=known)

    async def rows_of(self, contract: Contract, plan: TrialPlan, *, wider: int | None = None) -> Reading[RunRows]:
        """Read a run's rows of the window, and so many steps on both sides of it; as many again when not said.

        The gated figures are read by the names that were agreed, whatever the contract calls them by now.
        """
        contract = with_names(contract, plan.control_names if contract.run_id == plan.run_id else plan.child_names)
        window = window_of(plan)
        around = window.steps if wider is None else wider
        return await self._rows.rows(
            contract,
            first_step=max(0, window.first_step - around),
            last_step=window.last_step + around,
            figures=figures_of(plan, contract),
        )

    async def compare(
        self,
        contract: Contract,
        child: Contract,
        trial: Trial,
        jobs: Reading[tuple[Job, ...]],
        incidents: tuple[Incident, ...] | None,
    ) -> Compared | str:
        """Hold the child against the control; why that cannot be done, in words, where it cannot.

        Args:
            contract: the old run's.
            child: the child's.
            trial: what was agreed, and since when the child lives.
            jobs: what the orchestrator says of the child: its rows are told from anybody else's by it.
            incidents: of the child, those that are over too; None when they could not be read.
        """
        old, new = await asyncio.gather(self.rows_of(contract, trial.plan), self.rows_of(child, trial.plan))
        if isinstance(old, Unknown):
            return f"the old run's rows cannot be read: {old.detail}"
        if isinstance(new, Unknown):
            return f"the child's rows cannot be read: {new.detail}"
        mine = of_jobs(new.value, jobs)
        if isinstance(mine, str):
            return mine
        happened = count_happened(jobs, incidents, launched_at(trial)) if trial.plan.quiet else None
        found = await asyncio.to_thread(
            compare,
            old.value.history,
            mine.history,
            gates_of(trial.plan),
            window_of(trial.plan),
            alpha=trial.plan.alpha,
            happened=happened,
        )
        last = window_of(trial.plan).last_step
        is_past = mine.newest_step is not None and mine.newest_step > last
        return Compared(control=old.value, child=mine, found=found, is_past_window=is_past)

    async def trajectory(
        self, contract: Contract, from_step: int, steps: int, jobs: Reading[tuple[Job, ...]]
    ) -> tuple[TrajectorySays, int | None] | str:
        """Hold the rolled-back run against its own past; beside it the newest step that it has replayed."""
        rows = await self._rows.rows(contract, first_step=from_step, last_step=from_step + steps, figures=("loss",))
        if isinstance(rows, Unknown):
            return f"the old run's rows cannot be read: {rows.detail}"
        after = own_executions(rows.value, jobs)
        if after is None:
            return "which rows are the rolled-back launch's is not known: the orchestrator does not say"
        before = frozenset(range(len(rows.value.executions))) - after
        says = await asyncio.to_thread(judge_trajectory, rows.value, before=before, after=after, from_step=from_step)
        return says, _newest(rows.value.history, after)


def launched_at(trial: Trial) -> datetime:
    """Return since when the child may live: its launch follows the stop of the old run."""
    return trial.reached_at(Stage.OLD_STOPPED) or trial.reached_at(Stage.LAUNCHED) or trial.agreed_at


def own_executions(rows: RunRows, jobs: Reading[tuple[Job, ...]]) -> frozenset[int] | None:
    """Return which executions are the job's own; None where the orchestrator does not tell all of them.

    Rows in Finelog say who logged them. A metrics file names nobody: what began there since the job was submitted is
    the job's, both times being of one machine; without a time nobody can say, and it is not.
    """
    known = executions_of(jobs)
    if isinstance(jobs, Unknown) or not known.is_exact:
        return None
    submitted_at = min(job.submitted_at for job in jobs.value)
    began_at = rows.began_at or (None,) * len(rows.executions)
    return frozenset(
        number
        for number, (uid, began) in enumerate(zip(rows.executions, began_at, strict=True))
        if uid in known.all
        or (uid and not uid.startswith(EXECUTION_PREFIX) and began is not None and began >= submitted_at)
    )


def of_jobs(rows: RunRows, jobs: Reading[tuple[Job, ...]]) -> RunRows | str:
    """Return the rows that the child's own executions logged; in words why nobody knows which those are.

    Rows of another job under the same run id prove nothing about this one (field report R37).
    """
    own = own_executions(rows, jobs)
    if own is None:
        return f"which rows are the child's is not known: {_why_unknown(jobs)}"
    mine = np.array(sorted(own), dtype=np.int64)
    figures = {}
    newest: list[int] = []
    for name, figure in rows.history.figures.items():
        kept = np.isin(figure.executions, mine)
        figures[name] = Figure(figure.steps[kept], figure.executions[kept], figure.values[kept])
        newest += [int(figures[name].steps.max())] if kept.any() else []
    return replace(rows, history=History(figures), newest_step=max(newest, default=None))


def _why_unknown(jobs: Reading[tuple[Job, ...]]) -> str:
    if isinstance(jobs, Unknown):
        return jobs.detail
    unread = next((job.tasks.detail for job in jobs.value if isinstance(job.tasks, Unknown)), "")
    return unread or "the orchestrator does not tell every attempt of its job"


def _newest(history: History, executions: frozenset[int]) -> int | None:
    steps = [
        int(figure.steps[np.isin(figure.executions, list(executions))].max())
        for figure in history.figures.values()
        if np.isin(figure.executions, list(executions)).any()
    ]
    return max(steps, default=None)
