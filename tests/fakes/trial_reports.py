"""Builders for what a trial's report is made of: a trial, two runs' rows, a comparison with every kind of answer."""

from datetime import timedelta
from typing import Any

import numpy as np

from bot.model.conduct import Review, Stage, Step, Trial
from bot.model.gate import parse_gate
from bot.model.planned import PlannedCheckpoint
from bot.model.series import Figure, Floats, History, Ints
from bot.model.trial import Comparison, Happened, Judged, Moved, Outcome, Quiet, SideRows, Window
from bot.model.trialplan import PlannedFork, TrialPlan
from bot.model.value import PersonName, RunId
from tests.fakes.snapshots import AT, RUN

CHILD = RunId("hero-next")
ADA = PersonName("ada")
WINDOW = Window(first_step=1000, steps=200)
GATES = ("loss mean <= +0.002", "tokens_per_second mean >= -1%", "grad_norm p95 within 5%", "mfu mean >= -1%")


def a_trial(stage: Stage = Stage.RUNNING, *, plan: dict[str, Any] | None = None, **fields: Any) -> Trial:
    """Return a trial that came to a stage by the usual way, ten minutes apart."""
    agreed: dict[str, Any] = {
        "run_id": RUN,
        "child_run_id": CHILD,
        "child_root": "gs://bucket/hero-next/checkpoints",
        "handoff": PlannedCheckpoint(step=1000, path="gs://bucket/hero/checkpoints/step-1000"),
        "window_steps": 200,
        "gates": GATES,
        "quiet": True,
        "alpha": 0.05,
        "fork": PlannedFork(
            entity="acme", project="hero", parent_id=RUN, child_id=CHILD, fork_step=1003, global_step=999
        ),
        "coverage_gaps": ("no evaluation falls into the window",),
        "rollback_by": AT + timedelta(hours=12),
        "submitter": ADA,
    }
    way = tuple(Stage)[: tuple(Stage).index(stage) + 1]
    given: dict[str, Any] = {
        "plan": TrialPlan(**agreed | (plan or {})),
        "request": 7,
        "agreed_by": ADA,
        "agreed_at": AT,
        "stage": stage,
        "steps": tuple(Step(stage=each, at=AT + timedelta(minutes=10 * n)) for n, each in enumerate(way)),
        "review": Review(by=PersonName("grace"), at=AT),
    }
    return Trial(**given | fields)


def figure(steps: Ints | list[int], values: Floats | list[float], execution: int = 0) -> Figure:
    """Return what one execution logged of a figure."""
    places = np.asarray(steps, np.int64)
    return Figure(places, np.full(places.size, execution, np.int64), np.asarray(values, np.float64))


def joined(*figures: Figure) -> Figure:
    """Return what several executions logged of one figure."""
    parts = ((each.steps, each.executions, each.values) for each in figures)
    steps, executions, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Figure(steps, executions, values)


def a_history(first: int, last: int, *, seed: int = 1, shift: float = 0.0, execution: int = 0) -> History:
    """Return a run that logs its loss at every step and the rest at every tenth; the batches swing alike in all."""
    own, batches = np.random.default_rng(seed), np.random.default_rng(0).standard_normal(last + 1)
    steps = np.arange(first, last + 1)
    tenth = steps[steps % 10 == 0]

    def wave(level: float, noise: float) -> Figure:
        return figure(tenth, level + noise * own.standard_normal(tenth.size), execution)

    loss = 2.3 + 0.06 * batches[steps] + shift + 0.001 * own.standard_normal(steps.size)
    return History(
        {
            "loss": figure(steps, loss, execution),
            "tokens_per_second": wave(1.2e6, 2000),
            "grad_norm": wave(0.4, 0.01),
            "mfu": wave(0.4, 0.001),
            "token_drops": wave(0.002, 0.0001),
            "router_entropy": wave(4.1, 0.01),
        }
    )


def a_comparison(**fields: Any) -> Comparison:
    """Return a comparison in which one gate fails, one passes and two cannot tell."""
    rows = SideRows(
        rows=200,
        steps=200,
        last_step=1199,
        same_again=0,
        contradictions=0,
        steps_back=0,
        not_finite=0,
        other_executions=0,
    )
    failed, passed, open_, missing = map(parse_gate, GATES)
    gates = (
        Judged(
            gate=passed,
            outcome=Outcome.PASS,
            reasons=("the whole interval is within the limit",),
            delta=-0.00259,
            low=-0.00596,
            high=0.00078,
            margin=0.00741,
            pairs=20,
            covered=20,
            expected=20,
            stride=10,
            mean_delta=-3211.4,
            max_delta=-12230.0,
            max_step=1140,
            control=rows,
            child=rows,
        ),
        Judged(
            gate=open_,
            outcome=Outcome.CANNOT_TELL,
            reasons=("18 of 20 steps, one in 10, and 20 are needed",),
            delta=0.026,
            low=0.00756,
            margin=0.024,
            pairs=18,
            covered=18,
            expected=20,
            stride=10,
        ),
        Judged(
            gate=failed,
            outcome=Outcome.FAIL,
            reasons=("beyond the limit from step 1089 on",),
            delta=0.00516,
            low=0.00478,
            high=0.00554,
            margin=-0.00316,
            pairs=200,
            covered=200,
            expected=200,
            stride=1,
            failed_first_at=1089,
            mean_delta=0.00516,
            max_delta=0.00955,
            max_step=1192,
        ),
        Judged(gate=missing, outcome=Outcome.CANNOT_TELL, reasons=("mfu: the child never logged it",), expected=20),
    )
    quiet = Quiet(
        outcome=Outcome.FAIL,
        reasons=("1 retries",),
        happened=Happened(crashes=0, retries=1, watchdogs=0, alerts=None),
    )
    other = Moved(
        metric="router_entropy", pairs=20, mean_delta=0.00079, max_delta=-0.0301, max_step=1030, share=0.00019
    )
    given: dict[str, Any] = {
        "window": WINDOW,
        "alpha": 0.05,
        "outcome": Outcome.FAIL,
        "gates": gates,
        "quiet": quiet,
        "others": (other,),
        "notes": ("attempts 0, 1 of the child logged steps of the window; only 1, the newest, is compared",),
    }
    return Comparison(**given | fields)
