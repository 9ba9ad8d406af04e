"""What lives: one job of the old run and its pods, nothing beside them, and a launch that refuses to join them."""

import re
from collections.abc import Iterator

from bot.model.job import Job, Task
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.snapshot import Snapshot
from bot.model.value import CheckId
from checks.kin import is_below, rivals
from checks.trial.guards.guard import Group, Guard, Word, all_of, cannot_tell, fails, passes, unseen
from checks.trial.guards.launches import no_child

_KUBERNETES = "kubernetes"
_NAMED = 5


def _coordinators(rehearsal: Rehearsal) -> Word:
    job = rehearsal.seen.job
    return all_of(
        f"{job.job_id if job else 'nothing'} lives, and no other job of either run",
        (*_against_old(rehearsal.seen), *_against_child(rehearsal)),
    )


def _against_old(seen: Snapshot) -> Iterator[Word]:
    if isinstance(seen.jobs, Unknown):
        yield unseen(seen.jobs, "whether the old run's job lives")
    elif seen.job is None or seen.job.state.is_terminal:
        state = f"{seen.job.job_id} is {seen.job.state}" if seen.job else "the orchestrator knows no job of it"
        yield fails(f"the old run does not live: {state}", "let it run before it is handed over")
    yield from _against_neighbours(seen, ())


def _against_child(rehearsal: Rehearsal) -> Iterator[Word]:
    seen = rehearsal.child_seen
    if seen is None:
        yield no_child(rehearsal)
        return
    if isinstance(seen.jobs, Unknown):
        yield unseen(seen.jobs, "whether a job of the child lives")
    else:
        yield from (_lives(job) for job in seen.jobs.value if not job.state.is_terminal)
    yield from _against_neighbours(seen, _listed(rehearsal.seen))


def _against_neighbours(seen: Snapshot, of_other: tuple[Job, ...]) -> Iterator[Word]:
    """Yield what lives beside a run's own job; what is the other run's is judged there."""
    if isinstance(seen.neighbours, Unknown):
        yield unseen(seen.neighbours, f"whether other jobs of {seen.run_id} live")
        return
    for job in rivals(seen):
        if not any(job.job_id == other.job_id or is_below(job, other) for other in of_other):
            yield _lives(job)


def _lives(job: Job) -> Word:
    return fails(
        f"{job.job_id} lives too ({job.state})", "find out whose it is, and end it by hand if it is a leftover"
    )


def _listed(seen: Snapshot) -> tuple[Job, ...]:
    return seen.jobs.value if isinstance(seen.jobs, Known) else ()


def _pods(rehearsal: Rehearsal) -> Word:
    if rehearsal.child_seen is None:
        return no_child(rehearsal)
    readings = (rehearsal.seen.pods, rehearsal.child_seen.pods)
    if _KUBERNETES not in rehearsal.services and all(_is_absent(each) for each in readings):
        return passes("no Kubernetes is used")
    gap = next((each for each in readings if isinstance(each, Unknown)), None)
    if gap is not None:
        return unseen(gap, "which pods live")
    pods = {pod.uid: pod for each in readings if isinstance(each, Known) for pod in each.value if pod.is_live}
    return all_of(
        f"{len(pods)} pods live, each of a task of the old run", _against_pods(rehearsal.seen, tuple(pods.values()))
    )


def _is_absent(reading: Reading[tuple[Pod, ...]]) -> bool:
    return isinstance(reading, Unknown) and reading.reason is Gap.NOT_CONFIGURED


def _against_pods(seen: Snapshot, pods: tuple[Pod, ...]) -> Iterator[Word]:
    """Yield the live pods that are of no task of the old run's live jobs, or of an attempt that is over."""
    if isinstance(seen.jobs, Unknown):
        yield unseen(seen.jobs, "whose pods may live")
        return
    tasks: dict[str, Task] = {}
    unread: dict[str, Unknown] = {}
    for job in seen.jobs.value:
        if job.state.is_terminal:
            continue
        if isinstance(job.tasks, Unknown):
            unread[job.job_id] = job.tasks
        else:
            tasks |= {task.task_id: task for task in job.tasks.value}
    for gap in unread.values():
        yield unseen(gap, "which tasks the old run has")
    strangers = [pod for pod in pods if pod.job_id not in unread and not _is_of(pod, tasks.get(pod.task_id))]
    if strangers:
        more = f" and {len(strangers) - _NAMED} more" if len(strangers) > _NAMED else ""
        yield fails(
            f"{len(strangers)} pods live that are of no task of the old run now: "
            f"{', '.join(pod.place for pod in strangers[:_NAMED])}{more}",
            "wait until they have ended; delete them only when nothing of them runs any more",
        )


def _is_of(pod: Pod, task: Task | None) -> bool:
    """Whether a pod is of the attempt that a task is at; by the attempt's uid where both tell, else by its number."""
    if task is None or task.current_attempt is None:
        return False
    attempt = task.current_attempt
    if pod.attempt_uid and attempt.uid:
        return pod.attempt_uid == attempt.uid
    return pod.attempt is None or pod.attempt == attempt.attempt


def _refuses(rehearsal: Rehearsal) -> Word:
    """Show that the launch's own guard works: the old job lives, and the launch refuses to start beside it."""
    seen = rehearsal.seen
    if isinstance(seen.jobs, Unknown):
        return unseen(seen.jobs, "whether the old run's job lives")
    if seen.job is None or seen.job.state.is_terminal:
        return cannot_tell(
            "no job of the old run lives, so nothing shows what the launch refuses", "see coordinators.none"
        )
    if not rehearsal.refusal:
        return fails(f"the launch would start beside {seen.job.job_id}, which lives", "report it, and launch nothing")
    if rehearsal.is_refusal_unknown:
        return cannot_tell(f"the launch refuses, since what lives is not known: {rehearsal.refusal}", "mend the access")
    if re.search(rf"(?<![\w/-]){re.escape(seen.job.job_id)}(?![\w-])", rehearsal.refusal):
        return passes(f"the launch refuses: {rehearsal.refusal}")
    return fails(
        f"the launch does not see that {seen.job.job_id} lives, and refuses for another reason: {rehearsal.refusal}",
        "report it, and launch nothing",
    )


def _one(rehearsal: Rehearsal) -> Word:
    return all_of(
        f"{rehearsal.plan.submitter} alone owns the submission, and none is under way", _against_one(rehearsal)
    )


def _against_one(rehearsal: Rehearsal) -> Iterator[Word]:
    submitter, child = rehearsal.plan.submitter, rehearsal.child
    named = (rehearsal.contract.trial.submitter, child.trial.submitter if child else None)
    others = sorted({each for each in named if each not in {None, submitter}} - {None}, key=str)
    if others:
        owners = ", ".join(map(str, others))
        yield fails(f"{submitter} was agreed on, and [trial] submitter is {owners}", "name one, and agree anew")
    if rehearsal.is_submitting is None:
        yield cannot_tell("whether a submission is under way was not asked", "rehearse again")
    elif rehearsal.is_submitting:
        yield fails("an earlier submission may still be under way", "wait until it has ended, and see what came of it")


COORDINATORS = Guard(
    id=CheckId("coordinators.none"),
    title="The old run's job lives, and no other job of either run",
    source='deploy checklist, "Rehearse", "Verify": no competing coordinator or gang apart from the old run',
    group=Group.REHEARSE,
    rule=_coordinators,
)
PODS = Guard(
    id=CheckId("pods.none"),
    title="No pod lives that is not of a task of the old run, by the task's identity",
    source='deploy checklist, "Rehearse", "Verify": no competing … hero pods; match pods by task identity',
    group=Group.REHEARSE,
    rule=_pods,
)
REFUSES_LIVE = Guard(
    id=CheckId("launch.refuses_live"),
    title="The launch refuses to start beside the old run's live job",
    source='deploy checklist, "Rehearse", "Verify": launch refuses a live parent or child coordinator',
    group=Group.REHEARSE,
    rule=_refuses,
)
ONE = Guard(
    id=CheckId("submission.one"),
    title="One person owns the submission, and none is under way",
    source='deploy checklist, "Rehearse", "Verify": one operator owns submission; resolve an uncertain submission',
    group=Group.REHEARSE,
    rule=_one,
)
