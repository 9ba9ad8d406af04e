"""The base of every check's thresholds: frozen, and each field explains itself.

The text under a field (its attribute docstring) gives meaning, unit and source; ``docs/checks.md`` is made from it. A
run's contract moves a threshold under ``[thresholds."CHECK.ID"]``.
"""

from pydantic import ConfigDict

from bot.model.value import Value


class Thresholds(Value):
    """Numbers that a check compares with; every field has a default and a text."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class NoThresholds(Thresholds):
    """For a check that compares with nothing that anybody could want to move."""


class NoMemory(Value):
    """For a check that judges each snapshot by itself."""
