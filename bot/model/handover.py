"""The state file with which a monitoring owner hands a run over (babysit-job, "State File"), and how it compares."""

import shlex

from pydantic import ConfigDict, Field

from bot.model.value import JobId, Value


class StateFile(Value):
    """The procedure's JSON, key by key; keys that it does not name are left alone."""

    model_config = ConfigDict(extra="ignore")

    ts: int = Field(gt=0)
    """When it was written, milliseconds since 1970."""
    job_id: JobId = Field(min_length=1)
    config: str | None = ""
    """The orchestrator's configuration file."""
    wandb_url: str | None = ""
    wandb_name: str | None = ""
    history_file: str | None = ""
    resubmit_command: str = Field(min_length=1)
    """One shell line; must not wait for the job's end, and holds no secrets."""
    restart_count: int = Field(ge=0)


def without_waiting(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return an Iris submit command with ``--no-wait``, which the procedure insists on; any other as it is."""
    before = command[: command.index("--")] if "--" in command else command
    place = next((n for n in range(len(before) - 1) if before[n : n + 2] == ("job", "run")), None)
    if place is None or "--no-wait" in before:
        return command
    return (*command[: place + 2], "--no-wait", *command[place + 2 :])


def command_line(command: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> str:
    """Return one line for a shell, variables first."""
    pairs = tuple(f"{name}={value}" for name, value in environment)
    return shlex.join(("env", *pairs, *command) if pairs else command)


def differences_from(claim: StateFile, known: StateFile) -> tuple[str, ...]:
    """Say key by key where a claim differs from what is known here; what nobody here knows is no difference.

    Args:
        claim: the file.
        known: the file that would be written now.
    """
    told = []
    for key in ("job_id", "config", "wandb_url", "wandb_name", "history_file", "restart_count"):
        ours, theirs = getattr(known, key), getattr(claim, key)
        if ours not in {None, ""} and theirs != ours:
            told.append(f"{key}: {theirs} in the file, {ours} here")
    if _words(claim.resubmit_command) != _words(known.resubmit_command):
        told.append(f"resubmit_command: {claim.resubmit_command} in the file, {known.resubmit_command} here")
    return tuple(told)


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError:
        return [line]
    return [word for word in words if word != "--no-wait"]
