"""A trial moves from stage to stage: what each look at it changes, who is told, and what is put to the DRI. Pure.

``bot/conducting.py`` looks after each check of the old run and hands on what it saw; the executor tells of the actions.
The stages are drawn in docs/states.md. Source of every rule here: the deploy checklist (docs/procedures.md).
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from bot.model.conduct import Stage
from bot.model.record import Decision, Record
from handlers.context import Context
from handlers.trial import before_cut_over, closing, comparing, rolling_back
from handlers.trial.look import TrialLook
from handlers.trial.scene import Scene

_STAGES: Mapping[Stage, Callable[[Scene], Decision]] = {
    Stage.PLANNED: before_cut_over.record,
    Stage.RECORDED: before_cut_over.rehearse,
    Stage.REHEARSED: before_cut_over.wait_for_control,
    Stage.CONTROL_COMPLETE: before_cut_over.ask,
    Stage.FORKED: before_cut_over.ask,
    Stage.OLD_STOPPED: comparing.cut_off,
    Stage.LAUNCHED: comparing.start_up,
    Stage.RUNNING: comparing.compare,
    Stage.GO: closing.accept,
    Stage.NO_GO: rolling_back.roll_back,
    Stage.ROLLED_BACK: closing.hold_against_the_old_trajectory,
}


def decide_trial(record: Record, look: TrialLook, context: Context, at: datetime) -> Decision:
    """Return what follows from one look at a trial.

    One that has moved on since it was looked at, or is over, is left as it is: the next look sees it as it is then.
    """
    trial = record.run.trial
    if trial is None or trial.is_over or trial.stage is not look.stage:
        return Decision()
    return _STAGES[trial.stage](Scene(record=record, trial=trial, look=look, context=context, at=at))
