"""The messages themselves, as handlers make them, in every channel: written for a phone at three in the morning."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.model.action import Action, ActionState, Done, StepName
from bot.model.curve import CURVE, Curve
from bot.model.incident import Acknowledged, Incident, Resolved, open_incident
from bot.model.plan import Grant, Request, RequestState
from bot.model.planned import PlannedCheckpoint, SealPlan, StopPlan
from bot.model.record import Record, Telling
from bot.model.run import Progress, Run, RunState
from bot.model.snapshot import MetricRow
from bot.model.update import Update, UpdateKind
from bot.model.value import CheckId, JobId
from bot.model.verdict import Finding, Severity
from bot.render.console import console_lines
from bot.render.discord import render_discord
from bot.render.github import github_body
from bot.render.slack import render_slack
from handlers import tellings
from handlers.outcome import decide_outcome
from handlers.timers import decide_time_passed
from tests.fakes.decisions import a_plan
from tests.fakes.slack_values import texts_in
from tests.fakes.snapshots import AT, JOB, RUN, instance, later
from tests.unit.handlers.scene import ADA, PEOPLE, POSTED, context, request

HOURS = {"timezone": "Europe/Berlin", "working_hours": "09:00-18:00"}
PROGRESS = Progress(
    step=8123,
    step_at=later(-12),
    loss=2.3412,
    tokens_per_second=812_000,
    usual_tokens_per_second=1_240_000,
    checkpoint_step=8000,
    checkpoint_at=later(-38),
    save_every_steps=500,
    steps_per_s=0.1,
    accelerators=256,
)
ISSUE = "https://github.com/acme/runs/issues/4"
AROUND = context(people=(PEOPLE[0].model_copy(update=HOURS), *PEOPLE[1:]), milestones={"every": 1000})
ENDED = Finding(
    check=CheckId("job.ended"),
    severity=Severity.CRITICAL,
    summary="the job failed (host memory ran out) at step 8123: task 3 was killed at 99.8 % of its memory",
    evidence=(
        "first to die: task /me/hero-coord/3 attempt 0 on node-3, killed by signal 9 (exit code 137)",
        "peak memory of task 3: 1.8 TiB",
        "log 02:58: RuntimeError: <HBM> & host out of memory @everyone",
    ),
    advice="Relaunch the same run from its newest complete checkpoint, and see that it gets past this step.",
    since_step=8123,
    since_at=later(-12),
    is_recoverable=True,
)
STALLED = ENDED.model_copy(
    update={
        "check": CheckId("progress.stalled"),
        "summary": "no new step for 31 min (limit 30 min)",
        "evidence": ("last step 8123, its heartbeat goes on", "log: waiting for barrier"),
        "advice": "Look at the log of every host; hold a stack dump before anything is stopped.",
    }
)


def a_record(state: RunState = RunState.FAILED, *incidents: Incident, **fields: object) -> Record:
    rows = [
        MetricRow(step=step, values={"loss": 3.0 - step / 12_000, "tokens_per_second": 1.24e6 - step * 50})
        for step in range(0, 8123, 20)
    ]
    link = {"thread": ISSUE, "request:7": f"{ISSUE}#issuecomment-2000"}
    posted = tuple(
        each.model_copy(update={"link": link[each.slot]}) if each.channel == "github" else each for each in POSTED
    )
    run = Run(
        run_id=RUN,
        state=state,
        progress=PROGRESS,
        last_checked_at=AT,
        last_told_at=AT,
        tracker_url="https://wandb.ai/acme/hero/runs/12d8b6f0",
    )
    ended = instance(submitted_at=later(-600)).model_copy(update={"ended_at": later(-12), "exit_code": 137})
    given: dict[str, object] = {
        "run": run,
        "instances": (ended if state is RunState.FAILED else instance(submitted_at=later(-600)),),
        "incidents": incidents,
        "memories": {CURVE: Curve().followed_by(rows).model_dump_json()},
        "posted": posted,
    }
    return Record.model_validate(given | fields)


def relaunch(**fields: Any) -> Request:
    saved = PlannedCheckpoint(step=8000, path="gs://bucket/hero/checkpoints/step-8000")
    return request(plan=a_plan(RUN).model_copy(update={"resume_from": saved}), reason=ENDED.summary, **fields)


def acting(*steps: tuple[StepName, str], plan: Any = None, asked: Request | None = None) -> Action:
    """Return an action of which some steps are done."""
    asked = asked or relaunch()
    grant = Grant(request=7, run_id=RUN, digest=asked.digest, by=ADA, at=AT, expires_at=later(60))
    action = Action(number=1, run_id=RUN, plan=plan or asked.plan, grant=grant)
    for step, detail in steps:
        action = action.begun(step, AT).ended(step, Done(detail=detail), AT)
    return action


def outcome(record: Record, action: Action) -> Telling:
    before = action.model_copy(update={"records": action.records[:-1], "state": ActionState.GRANTED})
    known = record.model_copy(update={"actions": (before,)})
    told = decide_outcome(known, action, AROUND, AT, shape={}).tell
    return told[0]


def launched(kind: str) -> Telling:
    steps = (
        (StepName.SUBMIT, JOB),
        (StepName.CONFIRM, f"exactly one live job: {JOB}@{AT.isoformat()}"),
        (StepName.RESTORE, "loaded step-8000; training goes on from step 8001"),
    )
    action = acting(*steps).model_copy(update={"state": ActionState.DONE})
    before = (instance(submitted_at=later(-600)).model_copy(update={"ended_at": later(-72)}),) if kind == "re" else ()
    known = a_record(RunState.RELAUNCHING, instances=(*before, instance(1, submitted_at=later(-5))))
    return outcome(known, action)


def sealed() -> Telling:
    plan = SealPlan(
        run_id=RUN,
        tag=f"hero/{RUN}",
        repository="acme/train",
        sha="0" * 40,
        final_step=10_000,
        checkpoint=PlannedCheckpoint(step=10_000, path="gs://bucket/hero/checkpoints/step-10000"),
        message="sealed",
    )
    action = acting((StepName.TAG, f"tag hero/{RUN} made"), plan=plan).model_copy(update={"state": ActionState.DONE})
    return outcome(a_record(RunState.COMPLETED), action)


def stop_asked() -> Telling:
    plan = StopPlan(run_id=RUN, instance=f"{JOB}@{AT.isoformat()}", stop=JobId(JOB))
    asked = request(plan=plan, reason="ada asked for it", incident=None)
    return tellings.request_asked(AROUND, a_record(RunState.RUNNING), asked, AT, ())


def after_a_day() -> Telling:
    quiet = a_record(RunState.RUNNING, open_incident(4, RUN, STALLED.model_copy(update={"severity": "warning"}), AT))
    checked = quiet.run.model_copy(update={"last_told_at": AT - timedelta(hours=24)})
    return decide_time_passed(quiet.model_copy(update={"run": checked}), AROUND, AT, since=AT - timedelta(days=2)).tell[
        0
    ]


def stale() -> Telling:
    known = a_record(RunState.RUNNING)
    return decide_time_passed(known, AROUND, later(31), since=AT - timedelta(days=1)).tell[0]


def resolved() -> Telling:
    over = open_incident(4, RUN, STALLED, later(-42)).model_copy(update={"state": Resolved(at=AT)})
    return tellings.incident_resolved(AROUND, a_record(RunState.RUNNING), over, AT)


MESSAGES: dict[str, Callable[[], Telling]] = {
    "failure": lambda: tellings.incident_opened(
        AROUND, a_record(RunState.FAILED, open_incident(1, RUN, ENDED, AT)), open_incident(1, RUN, ENDED, AT), AT,
        is_failure=True,
    ),
    "stall": lambda: tellings.incident_opened(
        AROUND, a_record(RunState.RUNNING, open_incident(4, RUN, STALLED, AT)), open_incident(4, RUN, STALLED, AT), AT,
        is_failure=False,
    ),
    "request": lambda: tellings.request_asked(AROUND, a_record(), relaunch(), AT, ("launches so far: 1",)),
    "reminder": lambda: tellings.request_reminder(AROUND, a_record(), relaunch(), later(240)),
    "expired": lambda: tellings.request_closed(
        AROUND, a_record(), relaunch(state=RequestState.EXPIRED, decided_at=later(1440)), later(1440)
    ),
    "stop_request": stop_asked,
    "launch": lambda: launched(""),
    "relaunch": lambda: launched("re"),
    "resolved": resolved,
    "after_a_day": after_a_day,
    "monitor_stale": stale,
    "seal": sealed,
    "live": lambda: tellings.live_status(
        AROUND,
        a_record(
            RunState.RUNNING,
            open_incident(4, RUN, STALLED, AT).model_copy(update={"state": Acknowledged(by=ADA, at=AT)}),
        ),
        AT,
    ),
    "live_while_asked": lambda: tellings.live_status(AROUND, a_record(RunState.FAILED, requests=(relaunch(),)), AT),
}  # fmt: skip


def everywhere(update: Update) -> str:
    slack = render_slack(update, timezone="UTC", mention="U0ADA")
    shown = "\n".join(texts_in(list(slack.blocks)))
    body = github_body(update, key="k", timezone="UTC", asked_login="ada")
    console = "\n".join(console_lines(update, "UTC"))
    discord = render_discord(update, mark="k", timezone="UTC", mention="112233445566778899")
    embeds = "\n".join(
        line
        for embed in discord.embeds
        for line in (
            embed.get("title", ""),
            *(f"{each['name']}: {each['value']}" for each in embed.get("fields", ())),
            embed.get("description", ""),
        )
        if line
    )
    channels = {
        "Slack, on a lock screen": slack.text,
        "Slack": shown,
        "GitHub": body,
        "Discord": f"{discord.content}\n{embeds}",
        "Console": console,
    }
    return "\n\n".join(f"# {name}\n{text}" for name, text in channels.items()) + "\n"


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_reads_well_in_every_channel(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"messages/{name}.md", everywhere(MESSAGES[name]().update))


@pytest.mark.parametrize("name", MESSAGES)
def test_no_message_pings_anybody_by_its_content_and_each_says_where_and_what_next(name: str) -> None:
    update = MESSAGES[name]().update
    shown = everywhere(update)

    assert "@everyone" not in shown.partition("# GitHub")[0], "on GitHub it stands in a code block"
    assert f"{RUN} at step ~8123/10000: " in shown.splitlines()[1]
    assert update.next


def test_a_failure_says_what_it_costs_and_carries_its_picture() -> None:
    update = MESSAGES["failure"]().update

    assert update.kind is UpdateKind.FAILED
    assert "idle: 12 min, 51 accelerator-hours (256 accelerators), since the job ended" in update.evidence
    assert any(
        "steps to be trained again: 123 (last seen step 8123); about 20 min, 87 acc" in e for e in update.evidence
    )
    assert update.chart is not None
    assert len(update.model_dump_json()) < 32_000
    assert [mark.label for mark in update.chart.marks] == ["I1 job.ended"]


def test_what_stands_still_says_what_it_holds_and_promises_no_save() -> None:
    evidence = MESSAGES["stall"]().update.evidence

    assert "held without a new step: 12 min, 51 accelerator-hours (256 accelerators)" in evidence
    assert "next save: none while no step is made" in evidence
    assert "time left" not in everywhere(MESSAGES["stall"]().update)
