"""The end of a trial: the child is accepted, or the old run trains again and is held against its own past. Pure."""

from bot.model.conduct import Ending, Stage
from bot.model.record import Decision
from bot.model.trial import Outcome, read_comparison
from bot.model.verdict import Severity
from bot.render.trial import comparison_lines
from handlers.trial.scene import Scene

_SHOWN = 20
_FOLLOWS = {
    Outcome.PASS: ("it follows its old trajectory", Severity.INFO),
    Outcome.FAIL: ("it does NOT follow its old trajectory", Severity.CRITICAL),
    Outcome.CANNOT_TELL: ("whether it follows its old trajectory cannot be told", Severity.WARNING),
}


def accept(scene: Scene) -> Decision:
    """Publish the comparison and what it does not cover; the ordinary recovery policy holds for the child again."""
    trial = scene.trial
    if scene.look.old_lives:
        return scene.say(
            "both-live",
            f"{scene.look.old_lives} lives beside the accepted child: two trainers of one lineage",
            (),
            f"end one of them now: `/hero stop {scene.record.run_id}` puts the old run's to its DRI; the trial is "
            "closed once one alone lives",
            about=(scene.look.old_lives,),
            severity=Severity.CRITICAL,
            asks_dri=True,
        )
    found = read_comparison(trial.compared)
    lines = comparison_lines(found, limit=_SHOWN) if found is not None else ()
    gaps = tuple(f"not covered: {gap}" for gap in trial.plan.coverage_gaps)
    pins = (
        *((f"NOT KNOWN: what still names the old run ({scene.look.pins_gap})",) if scene.look.pins_gap else ()),
        *(f"still names the old run: {each.where}: {each.what}" for each in scene.look.pins),
    )
    reports = tuple(f"report: {url}" for url in (trial.report_url, trial.tracker_report_url) if url)
    return scene.move(
        Stage.CLOSED,
        f"GO: {scene.child} is accepted and goes on",
        (*lines, *gaps, *reports, *pins),
        f"{'change what still names the old run; ' if pins else ''}{scene.child} is watched as any run, and its "
        f"failures are put to its DRI; {scene.record.run_id} stays stopped",
        chart=scene.look.chart,
        ending=Ending.ACCEPTED,
    )


def hold_against_the_old_trajectory(scene: Scene) -> Decision:
    """Compare the first replayed steps with those that were logged before; then file the failure and close.

    Consistency of the trajectory, not bitwise determinism (deploy checklist, "Decide").
    """
    says = scene.look.trajectory
    if says is None or (says.outcome is Outcome.CANNOT_TELL and not scene.look.is_long_enough):
        detail = says.detail if says else scene.look.comparison_gap or "nothing was read yet"
        return scene.say(
            "replay",
            "the old run trains again; its replayed steps are held against its own past as they come",
            (detail,),
            "the tracker shows nothing new before the old counter is passed; progress is read from the trainer's rows",
            about=("waiting",),
        )
    what, severity = _FOLLOWS[says.outcome]
    found = read_comparison(scene.trial.compared)
    return scene.move(
        Stage.CLOSED,
        f"rolled back, and {what}",
        (
            says.detail,
            f"the trial failed: {scene.trial.why}",
            *(comparison_lines(found, limit=_SHOWN) if found is not None else ()),
            *(f"report: {url}" for url in (scene.trial.report_url, scene.trial.tracker_report_url) if url),
        ),
        f"find the cause before the change is tried again; {scene.child} is left as it ended, with its checkpoints"
        if says.outcome is not Outcome.FAIL
        else "look at the restored checkpoint and at what was launched before anything else is done",
        severity=severity,
        chart=scene.look.chart,
        asks_dri=True,
        ending=Ending.ROLLED_BACK,
    )
