"""What a crash log says: the class of the failure, what a relaunch would need, and the lines that show it.

The classifier itself is ``checks.crash.classify``; these are only the words it answers in.
"""

from enum import StrEnum

from pydantic import Field, NonNegativeInt, PositiveInt

from bot.model.value import Value

EVIDENCE_CHARS = 400
"""Longest line of evidence that is kept; longer ones are cut in the middle."""


class CrashClass(StrEnum):
    """Why a run ended, as far as its log tells."""

    INFRA_PREEMPTION = "infra_preemption"
    """Preempted, spot capacity taken back, maintenance, time limit of the scheduler."""
    INFRA_HARDWARE = "infra_hardware"
    """Node, accelerator, link or storage; a device that another process holds; a peer that vanished."""
    OOM_HOST = "oom_host"
    OOM_DEVICE = "oom_device"
    """Accelerator memory, also when the text never says "out of memory"."""
    CODE_BUG_SMALL = "code_bug_small"
    """One obvious place: a wrong name, a missing key, a missing cast."""
    CODE_BUG_COMPLEX = "code_bug_complex"
    CONFIG = "config"
    """Arguments, paths, versions, missing packages, credentials."""
    DATA = "data"
    """Truncated or corrupt files, missing fields, damaged checkpoints."""
    CAPACITY = "capacity"
    """No machines or no quota."""
    NUMERICAL = "numerical"
    """The run diverged and stopped itself."""
    BENIGN = "benign"
    """Noise after a successful end."""
    UNKNOWN = "unknown"
    """The text does not tell, or tells two stories."""


class RelaunchAdvice(StrEnum):
    """What Hero may propose; nothing is relaunched without the DRI in any case."""

    SAME_ID = "same_id"
    """The same run again, from its newest complete checkpoint."""
    NEW_ID = "new_id"
    """A new run with a new tracker id. Only a person decides this; the classifier never does."""
    AFTER_FIX = "after_fix"
    ASK = "ask"
    NO = "no"


class Evidence(Value):
    """One line of the log that speaks for the class."""

    line: PositiveInt
    """Counted from 1."""
    text: str = Field(max_length=EVIDENCE_CHARS)


class Location(Value):
    """The innermost frame of the failure that lies in the run's own code."""

    file: str = Field(max_length=300)
    line: NonNegativeInt
    function: str = Field(max_length=100)


class Classification(Value):
    """The answer about one crash log."""

    crash_class: CrashClass
    relaunch: RelaunchAdvice
    trajectory_affecting: bool | None
    """Whether mending it changes what is learned; None means not known, which is to be treated like True."""
    evidence: tuple[Evidence, ...]
    """The deciding line first; empty when nothing was recognised."""
    location: Location | None
    summary: str = Field(max_length=300)
    """One line for people."""
    signature: str = Field(max_length=200)
    """The same for the same root cause, whatever the rank, address or step: for counting repeats."""
