"""Which run of W&B a contract means. Blocking."""

from typing import Any

from bot.errors import RefusedError
from bot.model.contract import TrackerContract
from bot.settings import WandbSettings
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE, NoSuchRunError


def find_run(client: WandbClient, settings: WandbSettings, tracker: TrackerContract) -> Any:
    """Return the contract's run as the SDK has it, by its id, or by its name when there is one with that name.

    Raises:
        NoSuchRunError: there is none.
        RefusedError: the contract names no run, or a name that several runs have.
        ServiceError: there is no answer.
    """
    entity, project = place_of(tracker, settings)
    if tracker.id:
        return client.run(entity, project, tracker.id)
    if not tracker.name:
        raise RefusedError(SERVICE, "the contract names no run; give [tracker] id")
    named = client.named(entity, project, tracker.name)
    if not named:
        raise NoSuchRunError(SERVICE, f"no run of {project} is called {tracker.name!r}")
    if len(named) > 1:
        ids = ", ".join(run.id for run in named)
        raise RefusedError(SERVICE, f"several runs are called {tracker.name!r}: {ids}; give [tracker] id")
    return client.run(named[0].entity, named[0].project, named[0].id)


def place_of(tracker: TrackerContract, settings: WandbSettings) -> tuple[str | None, str]:
    """Return the entity, None for the key's own, and the project of a contract's run.

    Raises:
        RefusedError: no project is named anywhere.
    """
    project = tracker.project or settings.project
    if not project:
        raise RefusedError(SERVICE, "no project is named; give [tracker] project in the contract")
    return tracker.entity or settings.entity, project
