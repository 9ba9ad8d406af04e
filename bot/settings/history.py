"""The table about the owner's own run history."""

import re
from datetime import timedelta
from pathlib import Path

from pydantic import field_validator

from bot.model.durations import Duration
from bot.settings.section import Section

PLACEHOLDERS = ("wandb_url", "wandb_name", "job_id", "experiment", "run_id", "kind", "instance")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class HistorySettings(Section):
    """``[history]``: your own run-history program (babysit-job, "Run-history integration"), run after what it is about.

    In each argument ``{wandb_url}``, ``{wandb_name}``, ``{job_id}``, ``{experiment}``, ``{run_id}``, ``{kind}`` and
    ``{instance}`` are filled in; no shell is involved.
    """

    new: tuple[str, ...] = ()
    """argv that makes a run's history file, e.g. ``["python", "scripts/history.py", "new", "--wandb-url",
    "{wandb_url}"]``: run once for the first W&B address of a run. Nothing is run when it is empty."""

    add: tuple[str, ...] = ()
    """argv that adds a job to it: run once for each further launch of the run."""

    directory: Path = Path()
    """Where both are run; relative to the configuration file."""

    deadline: Duration = timedelta(seconds=60)
    """How long one may take before it is ended."""

    @field_validator("new", "add")
    @classmethod
    def _are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for word in value:
            for name in _PLACEHOLDER.findall(word):
                if name not in PLACEHOLDERS:
                    msg = f"{{{name}}} is nothing that is filled in; there are {', '.join(PLACEHOLDERS)}"
                    raise ValueError(msg)
        return value


def filled_in(argv: tuple[str, ...], values: dict[str, str]) -> tuple[str, ...]:
    """Return the arguments with every placeholder filled in, each argument staying one."""
    return tuple(_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in argv)
