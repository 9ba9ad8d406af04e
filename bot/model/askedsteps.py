"""How many steps a launch command itself asks for, as its argument says. Pure.

A config's key and a command's argument share their last part: ``--trainer.num_train_steps 10000`` for Levanter,
``trainer.max_steps=10000`` for Hydra, ``--train-iters 10000`` for Megatron. Others say ``--steps=200`` or
``--max-steps 200``: such plain names are an end only where nothing else is, and only while all of them say the same.
"""

import re
from collections.abc import Iterable

from bot.model.value import Value

_NAMES = ("stop_after_steps", "num_train_steps", "train_iters")
"""The one that counts first in front: a run stops there although the number of training steps sizes its schedule."""
_PLAIN = ("max_steps", "num_steps", "total_steps", "train_steps", "num_training_steps", "steps")
"""Names that say an end in one trainer and something else in another: they count as options of the program itself, or
of what is its trainer, never as a word between others or below ``eval.``."""
_TRAINER = r"(?:(?:trainer|train|training)\.)?"
_LARGEST = 10**15


class AskedSteps(Value):
    """One argument of a command that says how long is trained."""

    option: str
    """As it is written, without dashes."""
    said: str
    steps: int | None
    """None when what it says is no whole number above zero."""


def asked_steps(command: Iterable[str], key: str | None = None) -> AskedSteps | None:
    """Return what the command asks for, the last argument of a name before the others; None when it has none.

    Args:
        command: its arguments.
        key: the run's own dotted key for the final step, where the contract names one; the plain names do not count
            then, whatever else they mean in its trainer.
    """
    line = " ".join(command)
    for name in (*((key,) if key else ()), *_NAMES):
        found = list(_option(name).finditer(line))
        if found:
            option, said = found[-1]["option"], found[-1]["said"]
            return AskedSteps(option=option, said=said, steps=steps_of(said))
    return None if key else _plainly_asked(line)


def _plainly_asked(line: str) -> AskedSteps | None:
    """Return what the plain names ask for; None when they differ, or say no number, as ``--max-steps -1`` does."""
    found: dict[str, AskedSteps] = {}
    for name in _PLAIN:
        for each in _plain_option(name).finditer(line):
            option, said = each["option"] or each["assigned"], each["said"]
            found[name] = AskedSteps(option=option, said=said, steps=steps_of(said))
    told = {each.steps for each in found.values()}
    return next(iter(found.values())) if len(told) == 1 and None not in told else None


def steps_of(said: str) -> int | None:
    """Return a whole number above zero, also written ``10_000`` or ``1e4``; None for all else."""
    if re.fullmatch(r"[0-9][0-9_]*", said) and len(said) <= 20:  # noqa: PLR2004 - more is no number of steps
        number = int(said.replace("_", "").rstrip() or "0")
    elif re.fullmatch(r"[0-9]{1,16}(\.[0-9]{1,16})?([eE]\+?[0-9]{1,2})?", said):
        told = float(said)
        if told != int(told):
            return None
        number = int(told)
    else:
        return None
    return number if 0 < number < _LARGEST else None


def _plain_option(name: str) -> re.Pattern[str]:
    """Return what finds ``--NAME 200``, ``--NAME=200`` and ``NAME=200``; two words without a dash are prose."""
    spelt = _TRAINER + re.escape(name).replace("_", "[-_]")
    given = rf"--?(?P<option>{spelt})(?:\s*=\s*|\s+)|\+{{0,2}}(?P<assigned>{spelt})="
    return re.compile(rf"(?<![\w.\-+=/])(?:{given})[\"']?(?P<said>[^\s\"',;)]+)")


def _option(name: str) -> re.Pattern[str]:
    spelt = re.escape(name).replace("_", "[-_]")
    return re.compile(
        rf"(?<![\w.\-+])(?:--?|\+{{1,2}})?(?P<option>(?:[\w-]+\.)*{spelt})(?:\s*=\s*|\s+)[\"']?(?P<said>[^\s\"',;)]+)"
    )
