"""The guards of a trial, in the order in which they are shown. A new one is one function and its name here."""

from checks.trial.guards import child, rollback
from checks.trial.guards.checkouts import DEPLOY, REFUSES_DIRTY, ROLLBACK
from checks.trial.guards.credentials import FINELOG, IRIS, KUBERNETES, STORAGE, WANDB
from checks.trial.guards.gates import GATES
from checks.trial.guards.guard import Guard
from checks.trial.guards.handoff import COMPLETE, LINEAGE, RETENTION
from checks.trial.guards.identity import BOUNDARY, ONCE, TRACKER
from checks.trial.guards.live import COORDINATORS, ONE, PODS, REFUSES_LIVE
from checks.trial.guards.names import NAMES
from checks.trial.guards.plan import GAPS, HANDOFF, SCHEDULE, WINDOW
from checks.trial.guards.record import INVENTORY, MAIN, VALUES
from checks.trial.guards.review import REVIEW, WATCHDOG

GUARDS: tuple[Guard, ...] = (
    HANDOFF,
    child.CHILD,
    TRACKER,
    WINDOW,
    GATES,
    NAMES,
    SCHEDULE,
    GAPS,
    MAIN,
    VALUES,
    INVENTORY,
    DEPLOY,
    ROLLBACK,
    rollback.COMMAND,
    rollback.USER,
    rollback.CHECKPOINT,
    rollback.NO_FORK,
    rollback.LAUNCH,
    COMPLETE,
    RETENTION,
    LINEAGE,
    child.TREE,
    child.LAUNCH,
    child.START,
    BOUNDARY,
    ONCE,
    COORDINATORS,
    PODS,
    IRIS,
    KUBERNETES,
    STORAGE,
    WANDB,
    FINELOG,
    REFUSES_LIVE,
    REFUSES_DIRTY,
    ONE,
    WATCHDOG,
    REVIEW,
)
