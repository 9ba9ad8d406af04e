"""The guards of what lives, of the services, the limits and the review."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.conduct import Review
from bot.model.contract import Contract
from bot.model.job import JobState
from bot.model.reading import Gap
from bot.model.rehearsal import SERVICES, Alive, Rehearsal
from tests.fakes.rehearsals import (
    ADA,
    BOB,
    CHILD_JOB,
    EVE,
    TRAINER,
    child_contract,
    child_seen,
    green_rehearsal,
    known,
    limits,
    old_contract,
    old_jobs,
    old_pods,
    old_seen,
    trial_plan,
)
from tests.fakes.snapshots import AT, JOB, job, pod, unknown
from tests.unit.checks.trial.guards.cases import DARK, FAIL, PASS, Case, hold, ids

CHILDLESS = green_rehearsal(child=None, child_seen=None)
LIVE_CHILD = job(job_id=CHILD_JOB)
RETRY = job(job_id="/me/hero-coord-2")


def old(**readings: Any) -> Rehearsal:
    return green_rehearsal(seen=old_seen(**readings))


def new(**readings: Any) -> Rehearsal:
    return green_rehearsal(child_seen=child_seen(**readings))


def without(service: str, **changes: Any) -> Rehearsal:
    """Return a rehearsal of a trial that does not need a service, or has not asked it."""
    services = tuple(each for each in SERVICES if each != service)
    answers = tuple(known(Alive(service=each, said="answers")) for each in services)
    return green_rehearsal(services=services, credentials=answers, **changes)


def refused(service: str) -> Rehearsal:
    answers = tuple(
        unknown(Gap.REFUSED, "401: bad key") if each == service else known(Alive(service=each, said="answers"))
        for each in SERVICES
    )
    return green_rehearsal(credentials=answers)


def limited(startup_limit: timedelta | None = None, **changes: Any) -> Rehearsal:
    return green_rehearsal(contract=old_contract(trial={"startup_limit": startup_limit}), **changes)


def covering(child: Contract) -> Review:
    """A review of the child's contract as it was then."""
    return Review(by=BOB, at=AT + timedelta(minutes=-5), covers=child.config_digest)


def reviewed(by: Any = BOB, minutes: int = -5, **changes: Any) -> Rehearsal:
    return green_rehearsal(review=Review(by=by, at=AT + timedelta(minutes=minutes)), **changes)


def dead(state: JobState = JobState.KILLED) -> Rehearsal:
    return old(jobs=(job(state),))


NO_PODS = unknown(Gap.NOT_CONFIGURED)
UNREAD = (job(), job(job_id=TRAINER, parent=JOB).model_copy(update={"tasks": unknown()}))
HALF_HOUR = timedelta(minutes=30)
CASES = (
    # Jobs.
    Case("coordinators.none", green_rehearsal(), PASS, f"{JOB} lives, and no other job"),
    Case("coordinators.none", old(neighbours=(job(JobState.FAILED, job_id="/me/hero-coord-2"),)), PASS, "no other"),
    Case("coordinators.none", new(jobs=(job(JobState.KILLED, job_id=CHILD_JOB),)), PASS, "no other"),
    Case("coordinators.none", new(neighbours=old_jobs()), PASS, "no other"),
    Case("coordinators.none", dead(), FAIL, f"{JOB} is killed"),
    Case("coordinators.none", old(jobs=()), FAIL, "the orchestrator knows no job of it"),
    Case("coordinators.none", old(neighbours=(RETRY,)), FAIL, "/me/hero-coord-2 lives too"),
    Case("coordinators.none", new(jobs=(LIVE_CHILD,)), FAIL, f"{CHILD_JOB} lives too"),
    Case("coordinators.none", new(neighbours=(LIVE_CHILD,)), FAIL, f"{CHILD_JOB} lives too"),
    Case("coordinators.none", old(jobs=unknown()), DARK, "no answer in 20 s"),
    Case("coordinators.none", old(neighbours=unknown()), DARK, "other jobs of hero-12d8b6f0"),
    Case("coordinators.none", old(neighbours=unknown(Gap.NOT_CONFIGURED)), DARK, "other jobs of hero-12d8b6f0"),
    Case("coordinators.none", new(jobs=unknown()), DARK, "whether a job of the child lives"),
    Case("coordinators.none", new(neighbours=unknown()), DARK, "other jobs of hero-next"),
    Case("coordinators.none", CHILDLESS, DARK, "no contract that can be used"),
    # Pods.
    Case("pods.none", green_rehearsal(), PASS, "2 pods live, each of a task of the old run"),
    Case("pods.none", new(pods=old_pods()), PASS, "2 pods live"),
    Case("pods.none", new(pods=(pod(0, "Succeeded", job_id=CHILD_JOB),)), PASS, "2 pods live"),
    Case("pods.none", old(pods=(pod(0, job_id=TRAINER),)), PASS, "1 pods live"),
    Case(
        "pods.none",
        without("kubernetes", seen=old_seen(pods=NO_PODS), child_seen=child_seen(pods=NO_PODS)),
        PASS,
        "no Kubernetes is used",
    ),
    Case("pods.none", new(pods=(pod(0, job_id=CHILD_JOB),)), FAIL, f"of task {CHILD_JOB}/0"),
    Case("pods.none", old(pods=(*old_pods(), pod(7, job_id=TRAINER))), FAIL, f"of task {TRAINER}/7"),
    Case("pods.none", old(pods=(*old_pods(), pod(0, job_id=TRAINER, uid="older"))), FAIL, f"of task {TRAINER}/0"),
    Case("pods.none", old(pods=(*old_pods(), pod(0, job_id=TRAINER, number=3))), FAIL, f"{TRAINER}/0, attempt 3"),
    Case("pods.none", old(jobs=(job(JobState.KILLED),)), FAIL, "2 pods live that are of no task of the old run"),
    Case("pods.none", old(pods=unknown()), DARK, "no answer in 20 s"),
    Case("pods.none", new(pods=unknown()), DARK, "no answer in 20 s"),
    Case("pods.none", old(pods=NO_PODS), DARK, "which pods live is not known"),
    Case("pods.none", without("kubernetes", seen=old_seen(pods=unknown())), DARK, "which pods live is not known"),
    Case("pods.none", old(jobs=unknown()), DARK, "whose pods may live"),
    Case("pods.none", old(jobs=UNREAD), DARK, "which tasks the old run has"),
    Case("pods.none", CHILDLESS, DARK, "no contract that can be used"),
    # A launch beside what lives.
    Case("launch.refuses_live", green_rehearsal(), PASS, f"the launch refuses: {JOB} is running"),
    Case("launch.refuses_live", green_rehearsal(refusal=""), FAIL, f"would start beside {JOB}"),
    Case("launch.refuses_live", green_rehearsal(refusal=f"{JOB}-2 is running"), FAIL, "for another reason"),
    Case("launch.refuses_live", green_rehearsal(refusal=f"/{JOB} is running"), FAIL, "for another reason"),
    Case(
        "launch.refuses_live",
        green_rehearsal(refusal="Iris did not answer", is_refusal_unknown=True),
        DARK,
        "Iris did not answer",
    ),
    Case("launch.refuses_live", dead(), DARK, "no job of the old run lives"),
    Case("launch.refuses_live", old(jobs=unknown()), DARK, "no answer in 20 s"),
    # The submission.
    Case("submission.one", green_rehearsal(), PASS, "ada alone owns the submission"),
    Case("submission.one", green_rehearsal(is_submitting=True), FAIL, "may still be under way"),
    Case("submission.one", limited(plan=trial_plan(submitter=BOB)), PASS, "bob alone"),
    Case("submission.one", green_rehearsal(contract=old_contract(trial={"submitter": EVE})), FAIL, "submitter is eve"),
    Case("submission.one", green_rehearsal(child=child_contract(trial={"submitter": BOB})), FAIL, "submitter is bob"),
    Case("submission.one", green_rehearsal(is_submitting=None), DARK, "was not asked"),
    # The limits.
    Case("watchdog.known", green_rehearsal(), PASS, "45 min by trainer.startup_watchdog, a step 15 min by trainer"),
    Case("watchdog.known", green_rehearsal(limits=known(limits(step=None))), PASS, "Hero's own limit"),
    Case("watchdog.known", limited(HALF_HOUR, limits=known(limits(startup=None))), PASS, "30 min by [trial]"),
    Case("watchdog.known", limited(HALF_HOUR, limits=unknown(Gap.NOT_CONFIGURED)), PASS, "30 min by [trial]"),
    Case("watchdog.known", limited(None, limits=known(limits(startup=None))), FAIL, "stated nowhere"),
    Case("watchdog.known", limited(None, limits=unknown(Gap.NOT_CONFIGURED)), DARK, "is not known"),
    Case("watchdog.known", limited(HALF_HOUR, limits=unknown()), DARK, "no answer in 20 s"),
    # The review.
    Case("review.recorded", green_rehearsal(), PASS, "bob, 2026-11-29"),
    Case("review.recorded", green_rehearsal(review=None), FAIL, "nobody independent"),
    Case("review.recorded", green_rehearsal(review=covering(child_contract())), PASS, "bob, 2026-11-29"),
    Case("review.recorded", green_rehearsal(review=covering(child_contract(source_sha="f" * 40))), FAIL, "has changed"),
    Case("review.recorded", reviewed("mallory"), FAIL, "is nobody of [people]"),
    Case("review.recorded", reviewed(ADA), FAIL, "ada submits"),
    Case("review.recorded", reviewed(ADA, plan=trial_plan(submitter=EVE)), FAIL, "ada decides as the DRI"),
    Case("review.recorded", reviewed(EVE, plan=trial_plan(submitter=EVE)), FAIL, "eve submits"),
    Case("review.recorded", reviewed(minutes=-31), FAIL, "before the plan was agreed"),
    Case("review.recorded", reviewed(minutes=1), FAIL, "still to come"),
    Case("review.recorded", reviewed(agreed_at=None), DARK, "when the plan was agreed is not known"),
)
LOCAL = {"kind": "local", "directory": "jobs"}
OFF = {"mode": "disabled"}
DISK = {"output_root": "/data/next"}
UNNEEDED: dict[str, Rehearsal] = {
    "iris": without("iris", contract=old_contract(orchestrator=LOCAL), child=child_contract(orchestrator=LOCAL)),
    "kubernetes": without("kubernetes", seen=old_seen(pods=NO_PODS)),
    "storage": without(
        "storage",
        contract=old_contract(output_root="/data/old"),
        child=child_contract(**DISK),
        plan=trial_plan(child_root="/data/next/checkpoints", handoff={"step": 1, "path": "/data/old/step-1"}),
    ),
    "wandb": without(
        "wandb",
        plan=trial_plan(fork=None),
        contract=old_contract(tracker=OFF),
        child=child_contract(tracker=OFF),
    ),
    "finelog": without("finelog"),
}
NEEDED = without("finelog", seen=old_seen(telemetry=unknown()))
CREDENTIALS = (
    *(Case(f"credentials.{service}", green_rehearsal(), PASS, "answers") for service in SERVICES),
    *(Case(f"credentials.{service}", refused(service), DARK, "401: bad key") for service in SERVICES),
    *(Case(f"credentials.{service}", each, PASS, "does not need it") for service, each in UNNEEDED.items()),
    *(
        Case(f"credentials.{service}", NEEDED if service == "finelog" else without(service), DARK, "was not asked")
        for service in SERVICES
    ),
)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_nothing_lives_beside_the_old_run_and_the_launch_would_join_nothing(case: Case) -> None:
    hold(case)


@pytest.mark.parametrize("case", CREDENTIALS, ids=ids(CREDENTIALS))
def test_a_service_that_the_trial_needs_has_to_answer(case: Case) -> None:
    hold(case)
