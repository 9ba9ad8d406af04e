"""Whether every service that the trial needs answers, with the credentials that Hero has: one guard a service."""

from collections.abc import Callable
from functools import partial

from bot.model.addresses import is_in_store
from bot.model.contract import Contract
from bot.model.reading import Gap, Reading, Unknown
from bot.model.rehearsal import Rehearsal
from bot.model.value import CheckId
from checks.trial.guards.guard import Group, Guard, Word, cannot_tell, passes, unseen
from checks.trial.guards.identity import is_tracked

_SOURCE = 'deploy checklist, "Rehearse", "Verify": Iris, Kubernetes, object-store, and W&B credentials work'


def _contracts(rehearsal: Rehearsal) -> tuple[Contract, ...]:
    return (rehearsal.contract, *((rehearsal.child,) if rehearsal.child else ()))


def _is_iris(rehearsal: Rehearsal) -> bool:
    return any(each.orchestrator.kind == "iris" for each in _contracts(rehearsal))


def _is_configured(reading: Reading[object]) -> bool:
    return not (isinstance(reading, Unknown) and reading.reason is Gap.NOT_CONFIGURED)


def _has_pods(rehearsal: Rehearsal) -> bool:
    return _is_configured(rehearsal.seen.pods)  # type: ignore[arg-type]  # Known is invariant; nothing is written


def _is_stored(rehearsal: Rehearsal) -> bool:
    roots = (root for each in _contracts(rehearsal) for root in (each.output_root, *each.roots))
    return any(is_in_store(place) for place in (rehearsal.plan.handoff.path, rehearsal.plan.child_root, *roots))


def _has_tracker(rehearsal: Rehearsal) -> bool:
    return rehearsal.plan.fork is not None or any(is_tracked(each.tracker) for each in _contracts(rehearsal))


def _has_telemetry(rehearsal: Rehearsal) -> bool:
    return _is_configured(rehearsal.seen.telemetry)  # type: ignore[arg-type]  # as above


def _judge(service: str, is_needed: Callable[[Rehearsal], bool], rehearsal: Rehearsal) -> Word:
    answers = dict(zip(rehearsal.services, rehearsal.credentials, strict=True))
    answer = answers.get(service)
    if answer is None:
        if is_needed(rehearsal):
            return cannot_tell("this trial needs it, and it was not asked", "configure it, then rehearse again")
        return passes("this trial does not need it")
    if isinstance(answer, Unknown):
        return unseen(answer, "whether it can be used")
    return passes(answer.value.said)


def _guard(service: str, name: str, is_needed: Callable[[Rehearsal], bool]) -> Guard:
    return Guard(
        id=CheckId(f"credentials.{service}"),
        title=f"{name} answers, with the credentials that Hero has",
        source=_SOURCE,
        group=Group.REHEARSE,
        rule=partial(_judge, service, is_needed),
    )


IRIS = _guard("iris", "Iris", _is_iris)
KUBERNETES = _guard("kubernetes", "Kubernetes", _has_pods)
STORAGE = _guard("storage", "The object store", _is_stored)
WANDB = _guard("wandb", "The tracker", _has_tracker)
FINELOG = _guard("finelog", "Finelog", _has_telemetry)
