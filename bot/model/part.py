"""What the tables of a contract are made of: the base of them, and how a value in them came to be known."""

from enum import StrEnum

from pydantic import ConfigDict

from bot.model.value import Value


class Basis(StrEnum):
    """How a value came to be known; an inferred one is shown as inferred wherever it is shown."""

    STATED = "stated"
    INFERRED = "inferred"
    MEASURED = "measured"


class Part(Value):
    """A table of the contract. The text under each field is its line in ``docs/contract.md``."""

    model_config = ConfigDict(use_attribute_docstrings=True)
