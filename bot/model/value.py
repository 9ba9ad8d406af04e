"""The base of every value, and the ids that tell one thing from another."""

from typing import NewType

from pydantic import BaseModel, ConfigDict

RunId = NewType("RunId", str)
"""The name of one training lineage, e.g. ``hero-12d8b6f0``; also the stem of its contract's file."""

JobId = NewType("JobId", str)
"""The orchestrator's id of one launched job, e.g. ``/me/hero-coord``."""

CheckId = NewType("CheckId", str)
"""Dotted and stable: ``family.fault``."""

PersonName = NewType("PersonName", str)
"""The key of a ``[people.NAME]`` table in the settings."""


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # what is refused may be a secret
        ser_json_inf_nan="constants",  # a NaN loss must survive being stored
    )
