"""From the stop of the old run to go or no-go: nothing of this is decided by the ordinary retry policy. Pure."""

from datetime import timedelta

from bot.model.action import Action, ActionState
from bot.model.conduct import Stage, Trial
from bot.model.durations import say_duration
from bot.model.job import Job
from bot.model.plan import RequestState
from bot.model.reading import Known
from bot.model.record import Decision
from bot.model.trial import Comparison, Outcome
from bot.model.trialplan import GoPlan
from bot.model.verdict import Severity
from bot.render.trial import comparison_lines, gate_line, verdict_line, verdict_words
from bot.render.words import say_time
from handlers.trial.outcome import after_no_go
from handlers.trial.scene import Scene

_LATE = timedelta(minutes=10)
"""So long after the child has left the window rows of it may still arrive; then what is missing stays missing."""
_SHOWN = 12


def cut_off(scene: Scene) -> Decision:
    """Nothing trains: the executor launches the child, or the cut-over has come to nothing and it is a no-go."""
    if scene.record.active_action is not None:
        return _wanted_back(scene) or _with_report(scene)
    # It ended while its contract could not be read, or its end would have moved the trial itself.
    why = "the cut-over ended after the old run was stopped, and before the child was launched"
    return no_go(scene, why, is_unclear=True)


def start_up(scene: Scene) -> Decision:
    """The child restores, compiles and prefetches; the executor knows how long that may take."""
    if scene.record.active_action is not None:
        return _wanted_back(scene) or _with_report(scene)
    return no_go(scene, "the cut-over ended before the child was seen to train", is_unclear=True)


def compare(scene: Scene) -> Decision:
    """Look at the gates: a failed one ends the trial at once, a pass or what cannot be told is put to the DRI."""
    found = scene.look.comparison
    if why := _why_unclear(scene):
        return no_go(scene, why, is_unclear=True)
    if why := _why_no_go(scene, found):
        return no_go(scene, why)
    scene = _remembering(scene, found)
    if scene.look.old_lives:
        return _both_live(scene)
    if found is None:
        return _no_comparison(scene)
    if found.outcome is Outcome.PASS or _is_over(scene):
        return _ask_go(scene, found)
    return _progress(scene, found)


def _why_no_go(scene: Scene, found: Comparison | None) -> str:
    """Say why the trial has failed; empty while it has not.

    Source: deploy checklist, "Decide": a failed gate, an unexplained hang or a retry loop.
    """
    trial, look = scene.trial, scene.look
    if trial.rollback_wanted_by is not None:
        return f"{trial.rollback_wanted_by} asked for the rollback"
    go = scene.asked("go")
    if go is not None and go.state == "denied":
        return f"{go.decided_by} said no to the go{f': {go.note}' if go.note else ''}"
    if (ended := _ended(scene)) and not (found is not None and found.outcome is Outcome.PASS and _has_succeeded(scene)):
        return ended
    if look.stuck:
        return f"the child is stuck: {look.stuck[0]}"
    if found is None:
        return ""
    failed = [gate_line(each) for each in found.gates if each.outcome is Outcome.FAIL]
    if found.quiet is not None and found.quiet.outcome is Outcome.FAIL:
        failed.append(f"no crash, retry, watchdog, alert: {', '.join(found.quiet.reasons)}")
    return f"{'gates' if len(failed) > 1 else 'a gate'} failed: {failed[0]}" if failed else ""


def _why_unclear(scene: Scene) -> str:
    """Say that what trains is not what this trial launched, or that nobody saw that end: then people decide."""
    jobs = scene.look.child
    if not isinstance(jobs, Known):
        return ""
    if not jobs.value:
        return "the orchestrator knows no job of the child any more, and nobody saw it end"
    job: Job = jobs.value[0]
    if scene.trial.child_instance and job.instance_id != scene.trial.child_instance:
        return f"the child was launched again by another hand ({job.instance_id})"
    return ""


def _ended(scene: Scene) -> str:
    """Say that the child's job is over; empty while it lives or nobody knows."""
    jobs = scene.look.child
    if not isinstance(jobs, Known) or not jobs.value:
        return ""
    return f"the child's job is {jobs.value[0].state}" if jobs.value[0].state.is_terminal else ""


def _both_live(scene: Scene) -> Decision:
    """Two trainers of one lineage: nothing is accepted, and people have to end one of them."""
    requests, closed = scene.withdraw("go", "the old run lives beside the child")
    said = _say(
        scene,
        "both-live",
        f"{scene.look.old_lives} lives beside the child: two trainers of one lineage",
        (*scene.look.child_said, *_report(scene.trial)),
        f"end one of them now: `/hero stop {scene.record.run_id}` puts the old run's to its DRI, `/hero rollback` the "
        "child's; no go is asked for while both live",
        about=(scene.look.old_lives,),
        severity=Severity.CRITICAL,
    )
    return said.model_copy(update={"requests": requests, "tell": (*closed, *said.tell)})


def _has_succeeded(scene: Scene) -> bool:
    jobs = scene.look.child
    return isinstance(jobs, Known) and bool(jobs.value) and jobs.value[0].state == "succeeded"


def no_go(scene: Scene, why: str, *, is_unclear: bool = False) -> Decision:
    """Return the decision that ends the trial as failed; what comes of it is told, and planned at the next look.

    Args:
        scene: with the look that tells so.
        why: in words.
        is_unclear: whether nobody knows enough to undo anything on the yes that was given in advance.
    """
    found = scene.look.comparison
    requests, closed = scene.withdraw("go", f"it is a no-go: {why}")
    actions = _ended_go(scene, why)
    failed = scene.trial.model_copy(update={"is_unclear": is_unclear})
    lines = comparison_lines(found, limit=_SHOWN) if found is not None else ()
    decision = scene.move(
        Stage.NO_GO,
        f"NO-GO: {why}",
        (*scene.look.stuck, *lines, *scene.look.child_said, *_report(scene.trial)),
        after_no_go(failed, scene.context),
        severity=Severity.CRITICAL,
        chart=scene.look.chart,
        asks_dri=True,
        why=why[:2000],
        is_unclear=is_unclear,
        compared=found.model_dump_json() if found is not None else scene.trial.compared,
    )
    return decision.model_copy(
        update={
            "requests": (*requests, *decision.requests),
            "actions": actions,
            "tell": (*closed, *decision.tell),
        }
    )


def _ended_go(scene: Scene, why: str) -> tuple[Action, ...]:
    """End a go that was granted and is still looked at: what it was said yes to holds no more."""
    active = scene.record.active_action
    if active is None or active.plan.kind != "go":
        return ()
    return (active.model_copy(update={"state": ActionState.VOID, "noted": f"it is a no-go: {why}"}),)


def _wanted_back(scene: Scene) -> Decision | None:
    """While the executor is under way a rollback that somebody asks for waits for it: say so once."""
    wanted = scene.trial.rollback_wanted_by
    if wanted is None:
        return None
    return scene.say(
        "rollback-waits",
        f"{wanted} asked for the rollback; it is planned as soon as the cut-over under way has ended",
        (),
        "nothing else is begun meanwhile; a launch whose fate is not known waits until the orchestrator answers",
        about=(wanted,),
    )


def _with_report(scene: Scene) -> Decision:
    """Share where the comparison will be shown, before the child's first step."""
    url = scene.look.report_url
    if not url or url == scene.trial.report_url:
        return scene.keep(_addressed(scene))
    return scene.say(
        "report",
        "the comparison will be shown here",
        _report(_addressed(scene)),
        "it is renewed at every look, and compared from the child's first step on",
        about=(url,),
        chart=scene.look.chart,
        trial=_addressed(scene),
    )


def _addressed(scene: Scene) -> Trial:
    """Return the trial with the addresses of its reports."""
    look, trial = scene.look, scene.trial
    update = {
        "report_url": look.report_url or trial.report_url,
        "tracker_report_url": look.tracker_report_url or trial.tracker_report_url,
    }
    return trial.model_copy(update=update)


def _report(trial: Trial) -> tuple[str, ...]:
    named = (("report", trial.report_url), ("report in the tracker", trial.tracker_report_url))
    return tuple(f"{name}: {url}" for name, url in named if url)


def _late(scene: Scene) -> tuple[str, ...]:
    """Say that the time in which a rollback was meant to be possible is over."""
    end = scene.trial.plan.rollback_by
    if end is None or scene.at < end:
        return ()
    return (f"LATE: a rollback had to be possible until {say_time(end, scene.context.rules.timezone)}",)


def _gap(scene: Scene) -> tuple[str, ...]:
    return tuple(f"NOT KNOWN: {gap}" for gap in (scene.look.old_gap, scene.look.report_gap) if gap)


def _remembering(scene: Scene, found: Comparison | None) -> Scene:
    """Return the scene with what this look adds to what is remembered."""
    trial = _addressed(scene)
    update: dict[str, object] = {}
    if found is not None:
        update["compared"] = found.model_dump_json()
    if scene.look.is_past_window and trial.window_over_at is None:
        update["window_over_at"] = scene.at
    return Scene(
        record=scene.record,
        trial=trial.model_copy(update=update),
        look=scene.look,
        context=scene.context,
        at=scene.at,
    )


def _is_over(scene: Scene) -> bool:
    """Whether nothing more can be expected of the window."""
    since = scene.trial.window_over_at
    return since is not None and scene.at - since >= _LATE


def _no_comparison(scene: Scene) -> Decision:
    return _say(
        scene,
        "blind",
        f"the two runs cannot be compared: {scene.look.comparison_gap or 'nothing was read'}",
        (*scene.look.child_said, *_report(scene.trial)),
        "Hero looks again every minute; what is not known passes nothing",
        about=("blind",),
        severity=Severity.WARNING,
    )


def _progress(scene: Scene, found: Comparison) -> Decision:
    """Tell what has changed of the gates, and the child's first steps; not every poll."""
    outcomes = tuple(f"{each.gate} {each.outcome}" for each in found.gates)
    quiet = (f"quiet {found.quiet.outcome}",) if found.quiet else ()
    step = scene.look.child_step
    has_begun = step is not None and step >= found.window.first_step
    reached = f"the child has reached step {step}, the window ends with step {found.window.last_step}"
    begun = reached if has_begun else "no step of the child yet"
    return _say(
        scene,
        "gates",
        f"{begun}; {verdict_line(found)}",
        (
            *_late(scene),
            *comparison_lines(found, limit=_SHOWN),
            *scene.look.child_said,
            *_gap(scene),
            *_report(scene.trial),
        ),
        "an update comes when a gate's word changes; the question for go or no-go comes once all of them pass, or "
        f"{say_duration(_LATE)} after the child has left the window",
        about=(str(has_begun), *outcomes, *quiet, *_late(scene)),
        severity=Severity.INFO,
    )


def _say(
    scene: Scene,
    key: str,
    headline: str,
    lines: tuple[str, ...],
    next_: str,
    *,
    about: tuple[str, ...],
    severity: Severity,
) -> Decision:
    """Tell it once, and remember this look's comparison whether it is told or not."""
    said = scene.say(key, headline, lines, next_, about=about, severity=severity, chart=scene.look.chart)
    return said if said.run is not None else said.model_copy(update={"run": _kept(scene).run})


def _ask_go(scene: Scene, found: Comparison) -> Decision:
    """Put go or no-go to the DRI, with the numbers and what the trial does not cover."""
    plan = GoPlan(
        run_id=scene.record.run_id,
        child_run_id=scene.trial.plan.child_run_id,
        instance=scene.trial.child_instance,
        verdict=verdict_words(found),
        coverage_gaps=scene.trial.plan.coverage_gaps,
    )
    asked = scene.asked("go")
    whole = found.outcome is Outcome.PASS
    is_open = asked is not None and asked.state is RequestState.OPEN
    if is_open and asked is not None and not whole and scene.at - asked.asked_at < _LATE:
        # What comes and goes with a service does not outrun an answer: the yes is held against the gates once more.
        return _kept(scene)
    unclear = "the window is over, and not every gate can be told"
    reason = "every gate passes over the whole window" if whole else unclear
    lines = (
        *comparison_lines(found, limit=_SHOWN),
        *scene.look.child_said,
        *_gap(scene),
        *_report(scene.trial),
    )
    decision = scene.put(plan, reason, (*lines, "`deny` is a no-go, and the old run is launched again"))
    return decision if decision.run is not None else decision.model_copy(update={"run": _kept(scene).run})


def _kept(scene: Scene) -> Decision:
    """Remember this look's comparison and tell nothing."""
    return Decision(run=scene.run(scene.trial)) if scene.record.run.trial != scene.trial else Decision()
