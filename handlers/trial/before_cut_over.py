"""From the agreed plan to the question for the cut-over: nothing is touched in these stages. Pure."""

from typing import assert_never

from bot.model.conduct import Stage, Trial
from bot.model.plan import RequestState
from bot.model.planned import NoPlan
from bot.model.record import Decision
from bot.model.trial import Outcome
from bot.model.verdict import Severity
from bot.render.words import say_time
from handlers.trial.scene import Scene, not_passing


def record(scene: Scene) -> Decision:
    """Go on once the launch record is on main ("Land the launch record")."""
    if not scene.look.guards:
        return _unseen(scene)
    if left := not_passing(scene.look.guards):
        return _say_left(scene, "record", "its launch record is not complete", left)
    pins = tuple(f"pins the old run: {each.where}: {each.what}" for each in scene.look.pins)
    return scene.move(
        Stage.RECORDED,
        "the launch record is on main",
        (*(each.line for each in scene.look.guards), *pins),
        "Hero rehearses every guard against the live cluster now; nothing is changed by that",
    )


def rehearse(scene: Scene) -> Decision:
    """Go on once every guard passes, the independent review among them ("Rehearse preflight and rollback")."""
    if not scene.look.guards:
        return _unseen(scene)
    if left := not_passing(scene.look.guards):
        return _say_left(scene, "rehearse", "the rehearsal does not pass", left)
    last = scene.trial.plan.window_last
    return scene.move(
        Stage.REHEARSED,
        f"rehearsed: all {len(scene.look.guards)} guards pass",
        tuple(each.line for each in scene.look.guards),
        f"Hero waits until the old run has logged the control, up to step {last}",
    )


def _unseen(scene: Scene) -> Decision:
    """No guard has judged: the look was cut off or broke, and nothing follows from that."""
    return scene.say(
        "unseen",
        f"its guards could not be looked at: {scene.look.comparison_gap or 'nothing was read'}",
        (),
        "Hero looks again at every check; nothing is changed before all of them pass",
        about=("unseen",),
        severity=Severity.WARNING,
    )


def _say_left(scene: Scene, key: str, what: str, left: tuple[str, ...]) -> Decision:
    outcomes = tuple(f"{each.guard} {each.outcome}" for each in scene.look.guards)
    return scene.say(
        key,
        f"{what}: {len(left)} of {len(scene.look.guards)} guards do not pass",
        left,
        "mend what is listed; Hero looks again at every check, and nothing is changed before all of them pass",
        about=outcomes,
        severity=Severity.WARNING,
        asks_dri=True,
    )


def wait_for_control(scene: Scene) -> Decision:
    """Go on once the old run has logged every step of the matched window."""
    control = scene.look.control
    if control is None:
        return Decision()
    match control.outcome:
        case Outcome.PASS:
            return scene.move(
                Stage.CONTROL_COMPLETE,
                "the control is complete",
                (control.detail, *control.lines),
                _when(scene),
            )
        case Outcome.FAIL:
            return scene.say(
                "control",
                f"the control cannot become complete: {control.detail}",
                control.lines,
                f"`/hero trial abandon {scene.record.run_id}`, then plan it anew with another handoff checkpoint",
                about=(str(control.kind or control.detail),),
                severity=Severity.WARNING,
                asks_dri=True,
            )
        case Outcome.CANNOT_TELL:
            return scene.say(
                "control",
                "waits for the old run's control",
                (control.detail, *control.lines),
                "the old run goes on; nothing is changed",
                about=("waiting",),
            )
        case _:
            assert_never(control.outcome)


def _when(scene: Scene) -> str:
    start = scene.trial.plan.starts_at
    if start is None or start <= scene.at:
        return f"the cut-over is put to {scene.context.contract.dri} next"
    at = say_time(start, scene.context.rules.timezone)
    return f"the cut-over is put to {scene.context.contract.dri} at {at}"


def ask(scene: Scene) -> Decision:
    """Put the cut-over to the DRI once it is time, with every guard passed just now."""
    start, end = scene.trial.plan.starts_at, scene.trial.plan.rollback_by
    if scene.record.active_action is not None or (start is not None and scene.at < start):
        return scene.keep(scene.trial)
    if end is not None and scene.at >= end:
        return _too_late(scene, say_time(end, scene.context.rules.timezone))
    plan = scene.look.cutover
    if plan is None:
        return scene.keep(scene.trial)
    if isinstance(plan, NoPlan):
        return _cannot(scene, plan)
    checked = f"all {len(scene.look.guards)} guards passed just now"
    window = (scene.look.control.detail,) if scene.look.control else ()
    gaps = tuple(f"not covered: {gap}" for gap in scene.trial.plan.coverage_gaps)
    by = (f"rollback by {say_time(end, scene.context.rules.timezone)}",) if end else ()
    report = (f"report: {scene.look.report_url}",) if scene.look.report_url else ()
    reason = f"the trial of {scene.child} is ready"
    return scene.put(plan, reason, (checked, *window, *report, *by, *gaps))


def _too_late(scene: Scene, end: str) -> Decision:
    requests, closed = scene.withdraw("cutover", f"the time for a rollback is over ({end})")
    said = scene.say(
        "late",
        f"there is no time left for a rollback, which had to be done by {end}",
        (),
        f"`/hero trial abandon {scene.record.run_id}`, then plan it anew with another schedule; the old run goes on",
        about=(end,),
        severity=Severity.WARNING,
        asks_dri=True,
    )
    return said.model_copy(update={"requests": requests, "tell": (*closed, *said.tell)})


def _cannot(scene: Scene, plan: NoPlan) -> Decision:
    """Tell why there is nothing to ask. An open question stays: a yes to it is held against every guard once more."""
    asked = scene.asked("cutover")
    is_open = asked is not None and asked.state is RequestState.OPEN
    stays = f"; {asked.name} stays open, and holds only once all guards pass" if is_open and asked is not None else ""
    return scene.say(
        "no-cutover",
        f"the cut-over cannot be put to {scene.context.contract.dri}: {plan.reason}",
        (*plan.evidence, *not_passing(scene.look.guards)),
        f"{plan.fix}; Hero looks again at every check, and nothing was changed{stays}",
        about=("unknown",) if plan.is_unknown else (plan.reason,),
        severity=Severity.WARNING,
        asks_dri=not plan.is_unknown,
    )


def agreed(trial: Trial) -> tuple[str, ...]:
    """What comes next, once the plan is agreed; for the message that tells so."""
    first = trial.plan.handoff
    return (
        f"handoff: step {first.step}, {first.path}, protected from now on",
        "1. the launch record: code and values on main, and whoever pins the old run on the list",
        "2. the rehearsal: every guard dry, and an independent review (`/hero trial reviewed`)",
        f"3. the control: {trial.plan.window_steps} steps of the old run from step {trial.plan.window_first} on",
        "4. the cut-over, which is asked for by itself",
    )
