"""The configuration that a launched instance really has, as the trainer resolved it."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from datetime import timedelta

from pydantic import TypeAdapter, ValidationError

from bot.model.durations import Duration
from bot.model.value import Value

WORDS: Mapping[str, str] = {
    "batch_size": "batch size",
    "final_step": "final step",
    "optimizer": "optimizer",
    "seed": "seed",
    "mesh": "mesh",
    "precision": "precision",
    "data": "data",
    "checkpoint_interval": "checkpoint interval",
    "initialize_from": "first checkpoint",
    "output_root": "output root",
    "checkpoint_root": "checkpoint root",
    "temporary_checkpoint_root": "root of temporary checkpoints",
    "startup_watchdog": "start-up watchdog",
    "step_watchdog": "step watchdog",
    "tracker": "tracker",
}
"""Hero's words for what a configuration holds, in the order in which differences are told, and how people say them."""

UNSET = "null"

_CLOCK = re.compile(r"(?:(\d+) days?, )?(\d+):(\d{2}):(\d{2}(?:\.\d+)?)")
"""How Python prints a timedelta: W&B's copy has them so."""
_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)
_LARGEST_STEP = 10**15


class LaunchedConfig(Value):
    """One instance's resolved configuration, flattened, secrets scrubbed."""

    origin: str
    """Where it was read: a path, an address, or the tracker's run."""
    values: dict[str, str]
    """By dotted key, e.g. ``trainer.train_batch_size``; each value as JSON text. Lists are one value."""
    is_trackers: bool = False
    """The tracker's copy, which writes some values otherwise and keeps those of earlier launches that were dropped."""
    words: dict[str, tuple[str, ...]] = {}
    """By Hero's word (see ``WORDS``): the dotted keys, or beginnings of such, that were taken for it, the one that
    counts first. A word that is not here was not found."""

    def key(self, word: str) -> str | None:
        """Return the key that holds what goes by Hero's word, one that is set before one that is not; None: no key."""
        held = [key for key in self.words.get(word, ()) if key in self.values]
        return next((key for key in held if self.values[key] != UNSET), held[0] if held else None)

    def value(self, word: str) -> str | None:
        """Return the JSON text of what goes by Hero's word; None when this configuration has none such."""
        key = self.key(word)
        return self.values[key] if key is not None else None

    def text(self, word: str) -> str | None:
        """Return a string that goes by Hero's word; None when there is none, or it is no string or empty."""
        told = _decoded(self.value(word))
        return told if isinstance(told, str) and told else None

    def flag(self, key: str) -> bool | None:
        """Return a yes or no by its dotted key; None when it is neither."""
        told = _decoded(self.values.get(key))
        return told if isinstance(told, bool) else None

    def count(self, word: str) -> int | None:
        """Return a whole number above zero that goes by Hero's word; None when there is none or it is none."""
        told = _decoded(self.value(word))
        if isinstance(told, str):
            try:
                told = float(told.replace("_", ""))
            except ValueError:
                return None
        if isinstance(told, bool) or not isinstance(told, int | float) or not 0 < told < _LARGEST_STEP:
            return None
        return int(told) if told == int(told) else None

    def duration(self, word: str) -> timedelta | None:
        """Return a time above zero that goes by Hero's word: seconds, ``15m``, ``0:15:00`` or ISO 8601; else None."""
        return parse_span(_decoded(self.value(word)))

    @property
    def digest(self) -> str:
        """SHA-256 over the values; equal configurations have equal digests wherever they were read."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()


def parse_span(raw: object) -> timedelta | None:
    """Return a time above zero as trainers write it; None for all else."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    if isinstance(raw, float) and not math.isfinite(raw):
        return None
    clock = _CLOCK.fullmatch(raw.strip()) if isinstance(raw, str) else None
    try:
        if clock:
            days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
            span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        else:
            span = _DURATION.validate_python(raw)
    except (ValidationError, OverflowError):
        return None
    return span if span > timedelta() else None


def _decoded(text: str | None) -> object:
    return None if text is None else json.loads(text)
