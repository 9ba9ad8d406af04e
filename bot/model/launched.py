"""The configuration that a launched instance really has, as the trainer resolved it."""

import hashlib
import json

from bot.model.value import Value


class LaunchedConfig(Value):
    """One instance's resolved configuration, flattened, secrets scrubbed."""

    origin: str
    """Where it was read: a path, an address, or the tracker."""
    values: dict[str, str]
    """By dotted key, e.g. ``trainer.train_batch_size``; each value as JSON text. Lists are one value."""
    words: dict[str, str] = {}
    """By Hero's word (``final_step``, ``batch_size``, ``seed``, ``output_root``, ``step_watchdog`` …): the dotted key
    that was taken for it. A word that is not here was not found."""

    def value(self, word: str) -> str | None:
        """Return the JSON text of what goes by Hero's word; None when this configuration has none such."""
        key = self.words.get(word)
        return self.values.get(key) if key is not None else None

    @property
    def digest(self) -> str:
        """SHA-256 over the values; equal configurations have equal digests wherever they were read."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()
