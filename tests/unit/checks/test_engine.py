"""What holds for every check, and for judging with a set of them."""

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.model.contract import Contract
from bot.model.job import Job, JobState, TaskState
from bot.model.reading import Gap, Known
from bot.model.record import Record
from bot.model.snapshot import OPTIONAL, LogTail, MetricRow, Metrics, Snapshot, Source
from bot.model.trial import TrialContract
from bot.model.value import CheckId
from bot.model.verdict import Fail, NotApplicable, Pass, Severity, UnknownVerdict, Verdict
from checks import CHECKS
from checks.check import BROKEN, Check, judge_all, threshold_problems, thresholds_of
from checks.handoff import agreed_in
from checks.page import checks_page
from checks.progress import STALLED
from checks.thresholds import NoMemory, NoThresholds, Thresholds
from tests.fakes.clock import START
from tests.fakes.handoffs import on_trial
from tests.fakes.launched import config, tree, with_config
from tests.fakes.snapshots import (
    JOB,
    attempt,
    blind,
    checkpoint,
    contract,
    instance,
    job,
    later,
    row,
    rows,
    snapshot,
    task,
    unknown,
)
from tests.unit.checks.story import verdicts

PAGE = Path(__file__).parents[3] / "docs" / "checks.md"
LOGS = (
    "",
    "step 9 loss 2.0\nLoading checkpoint from gs://b/step-5",
    "ValueError: loss is nan at step 17",
    "Saving checkpoint at step 800\nvocab_size mismatch: 32000 != 32001\nFAILED_PRECONDITION: num_train_steps=9",
    "Saving checkpoint at step 800\nSaved checkpoint to gs://b/step-800 for step 800\nOwnerDiedError: gone",
    "slurmstepd: error: *** JOB 4242 CANCELLED DUE TO PREEMPTION ***",
    "Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in f\nKeyError: 'x'",
)
CONFIGS = (
    None,
    config(),
    config(tree(trainer__seed=7, trainer__num_train_steps=9_000, trainer__progress_watchdog__step_timeout="3h")),
    config({"output_path": "gs://elsewhere/out", "num_train_steps": -1}),
)

HANDED_OVER = checkpoint(400)
PROMISED = contract().model_copy(
    update={"trial": TrialContract().with_agreed(agreed_in(Record(run=on_trial(HANDED_OVER.path, 400))))}
)
"""As the watcher resolves it: a trial is under way, so that its check has something to look after."""

steps = st.integers(0, 30).map(lambda i: i * 400)
values = st.sampled_from((2.0, 2.0, 2.0, 9.0, math.nan, math.inf))
exits = st.sampled_from((None, 0, 1, -9, 137, 143))


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Job, ...]:
    def one(job_id: str, submitted: int, parent: str | None = None) -> Job:
        state = draw(st.sampled_from(JobState))
        began = START + timedelta(hours=submitted)
        states = draw(st.lists(st.sampled_from(TaskState), max_size=2))
        tasks = tuple(
            task(
                i,
                each,
                job_id=job_id,
                exit_code=draw(exits),
                attempts=tuple(attempt(n, each, started_at=began, exit_code=draw(exits)) for n in range(i + 1)),
                peak_memory_bytes=draw(st.sampled_from((None, 2**33))),
            )
            for i, each in enumerate(states)
        )
        return job(state, job_id=job_id, submitted_at=began, started_at=began, parent=parent, tasks=tasks)

    root = one(JOB, draw(st.integers(0, 2)))
    more = draw(st.sampled_from(("", "child", "other")))
    others = {"": (), "child": ((f"{JOB}/train", JOB),), "other": (("/me/other", None),)}[more]
    return draw(st.sampled_from(((), (root,), (root, *(one(name, 0, parent) for name, parent in others)))))


@st.composite
def snapshots(draw: st.DrawFn, minute: int) -> Snapshot:
    at = later(minute)
    logged = draw(st.lists(st.tuples(steps, values, st.booleans()), max_size=4))
    saved = draw(st.lists(st.tuples(steps, st.booleans(), st.booleans()), max_size=3))
    seen = snapshot(
        at,
        launch=draw(st.sampled_from((None, instance(from_step=800), instance(ended_at=START)))),
        jobs=draw(jobs()),
        log=draw(st.sampled_from(LOGS)),
        metrics=Metrics(
            rows=tuple(
                row(s, at if timed else None, loss=v, eval_loss=v, skipped_step=v - 2) for s, v, timed in logged
            ),
            unreadable=draw(st.sampled_from((0, 0, 2))),
        ),
        checkpoints=[
            checkpoint(s, is_complete=complete, saved_at=at - timedelta(minutes=5) if timed else None)
            for s, complete, timed in saved
        ],
    )
    launched = draw(st.sampled_from(CONFIGS))
    return seen if launched is None else with_config(seen, launched)


@st.composite
def stories(draw: st.DrawFn) -> list[Snapshot]:
    minutes = draw(st.lists(st.integers(1, 400), min_size=1, max_size=5))
    return [draw(snapshots(sum(minutes[: i + 1]))) for i in range(len(minutes))]


def blinded(seen: Snapshot, sources: set[str]) -> Snapshot:
    """Return the snapshot with Unknown in place of these readings; ``tasks`` are those of every job."""
    dark = unknown(at=seen.at)
    update: dict[str, Any] = {source: dark for source in sources if source != "tasks"}
    if "tasks" in sources and isinstance(seen.jobs, Known) and "jobs" not in sources:
        blind_jobs = tuple(each.model_copy(update={"tasks": dark}) for each in seen.jobs.value)
        update["jobs"] = Known(value=blind_jobs, at=seen.at)
    return seen.model_copy(update=update)


def closes(verdict: Verdict) -> bool:
    """Return whether an open incident of the check would be resolved by this."""
    return isinstance(verdict, Pass | NotApplicable)


def may_ask(verdict: Verdict) -> bool:
    return isinstance(verdict, Fail) and verdict.finding.is_recoverable


@pytest.mark.parametrize("check", CHECKS, ids=[each.id for each in CHECKS])
@given(story=stories(), sources=st.sets(st.sampled_from((*Source, "tasks")), min_size=1))
def test_an_unknown_in_place_of_a_known_never_makes_a_pass_nor_closes_an_incident_nor_asks_for_a_relaunch(
    check: Check[Any, Any], story: list[Snapshot], sources: set[str]
) -> None:
    seeing = verdicts(check, story, PROMISED)[-1]
    half_blind = verdicts(check, [*story[:-1], blinded(story[-1], sources)], PROMISED)[-1]

    assert not isinstance(half_blind, Pass) or isinstance(seeing, Pass), seeing
    assert not closes(half_blind) or closes(seeing), seeing
    assert may_ask(seeing) or not may_ask(half_blind), half_blind


@given(story=stories(), reason=st.sampled_from(Gap))
def test_a_snapshot_of_nothing_but_unknowns_passes_no_check_and_closes_no_incident(
    story: list[Snapshot], reason: Gap
) -> None:
    dark = blind(story[-1].at + timedelta(minutes=1), reason)

    for check in CHECKS:
        last = verdicts(check, [*story, dark], PROMISED)[-1]
        # A source that nobody has configured any more is none whose silence could hide something.
        is_gone_for_good = reason is Gap.NOT_CONFIGURED and bool(OPTIONAL & set(check.needs))
        assert not closes(last) or is_gone_for_good, check.id
        assert not isinstance(last, Pass), check.id
        assert not may_ask(last), check.id


@given(story=stories())
def test_memories_survive_being_stored_and_findings_name_their_check(story: list[Snapshot]) -> None:
    memories: dict[CheckId, str] = {}
    for seen in story:
        judged = judge_all(CHECKS, seen, contract(), memories)
        assert judged.broken == ()
        memories = judged.memories
        for check in CHECKS:
            memory = type(check.memory).model_validate_json(memories[check.id])
            assert memory.model_dump_json() == memories[check.id]
        for judgement in judged.judgements:
            if isinstance(judgement.verdict, Fail):
                finding = judgement.verdict.finding
                assert finding.check == judgement.check
                assert finding.advice
                assert all(len(line.splitlines()) == 1 for line in (finding.summary, *finding.evidence))


def test_ids_are_unique_and_the_ones_that_users_rely_on_are_there() -> None:
    ids = [check.id for check in CHECKS]

    assert len(set(ids)) == len(ids)
    assert {
        "job.ended", "job.pending", "job.repeated", "job.duplicate", "monitor.stale", "progress.stalled",
        "progress.startup", "checkpoint.stalled", "checkpoint.incomplete", "numerics.nonfinite", "resume.mismatch",
        "tracker.identity", "loss.spike", "throughput.collapse", "gradients.explosion", "router.collapse",
        "telemetry.gone", "run.down", "sources.contradict",
        "job.partial", "optimizer.skipped", "eval.regressed", "progress.final_step", "log.degraded", "data.tokenizer",
        "checkpoint.slow", "checkpoint.region", "checkpoint.window", "checkpoint.risk", "artifacts.missing",
        "config.drift", "output.path", "code.lineage", "job.accelerator",
        "pods.contradict", "pods.duplicate",
        "job.diagnostic", "trial.handoff",
    } == set(ids)  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=[each.id for each in CHECKS])
def test_every_check_says_what_it_is_where_it_is_from_and_what_each_threshold_means(check: Check[Any, Any]) -> None:
    assert check.title
    assert check.source
    assert check.needs
    assert isinstance(check.thresholds, Thresholds)
    for name, field in type(check.thresholds).model_fields.items():
        assert field.description, name
        assert not field.is_required(), name


def test_the_page_is_the_one_that_the_checks_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == checks_page(), "run: python -m checks.page > docs/checks.md"


def raising(_seen: Snapshot, _contract: Contract, _limits: NoThresholds, _memory: NoMemory) -> tuple[Verdict, NoMemory]:
    raise ZeroDivisionError


def test_a_check_that_raises_is_a_finding_about_hero_and_the_others_go_on() -> None:
    bad = Check(
        id=CheckId("test.bad"),
        title="Raises",
        severity=Severity.INFO,
        needs=(Source.JOBS,),
        source="this test",
        thresholds=NoThresholds(),
        memory=NoMemory(),
        judge=raising,
    )

    judged = judge_all((bad, *CHECKS), snapshot(metrics=rows(1, 5, until=later(0))), contract(), {})

    found = {each.check: each.verdict for each in judged.judgements}
    assert found[bad.id] == UnknownVerdict(reason=Gap.BROKEN, detail="the check raised ZeroDivisionError")
    broken = found[BROKEN]
    assert isinstance(broken, Fail)
    assert "test.bad" in broken.finding.summary
    assert found[STALLED.id] == Pass()
    assert bad.id not in judged.memories
    assert "ZeroDivisionError" in judged.broken[0].trace


def test_a_set_of_sound_checks_has_nothing_to_say_about_itself() -> None:
    judged = judge_all(CHECKS, snapshot(), contract(), {})

    assert judged.judgements[-1].check == BROKEN
    assert judged.judgements[-1].verdict == Pass()


def test_a_memory_of_an_older_shape_is_forgotten_and_not_misread() -> None:
    judged = judge_all((STALLED,), snapshot(), contract(), {STALLED.id: '{"steps_of_last_year": 3}'})

    assert judged.broken == ()


def test_a_contract_moves_a_threshold_and_leaves_the_others() -> None:
    limits = thresholds_of(STALLED, contract(thresholds={"progress.stalled": {"quiet": "1h30m"}}))

    assert limits.quiet == timedelta(minutes=90)
    assert limits.factor == STALLED.thresholds.factor


def test_wrong_thresholds_are_named_with_their_fix() -> None:
    wrong = contract(
        thresholds={
            "progress.stalled": {"quite": "1h"},
            "progress.stuck": {"quiet": "1h"},
            "job.pending": {"wait": "x"},
        }
    )

    problems = threshold_problems(CHECKS, wrong)

    assert len(problems) == 3
    assert problems[0].named == '[thresholds."progress.stalled"] quite'
    assert 'did you mean "quiet"?' in problems[0].message
    assert "no such check" in problems[1].message
    assert "write it as 15m" in problems[2].message
    with pytest.raises(ValidationError):
        thresholds_of(STALLED, wrong)


def test_a_nan_row_reaches_the_check_through_json_as_a_number() -> None:
    """Snapshots are stored and replayed: a NaN that came back as null or as text would not be found (R21)."""
    seen = snapshot(metrics=[MetricRow(step=1, values={"loss": math.nan})])

    again = Snapshot.model_validate_json(seen.model_dump_json())

    assert isinstance(again.metrics, Known)
    assert math.isnan(again.metrics.value.rows[0].values["loss"])


def test_the_default_log_of_the_builders_is_known_and_empty() -> None:
    seen = snapshot()

    assert seen.log == Known(value=LogTail(lines=(), is_cut=False), at=seen.at)
    assert seen.gaps() == ()
