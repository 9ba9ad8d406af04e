"""What the program's exit codes mean; scripts rely on them."""

from enum import IntEnum

from bot.errors import ConfigurationError, HeroError, ServiceError


class Exit(IntEnum):
    """The exit codes of ``hero``."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    """Wrong usage, or a setting or contract that is wrong."""
    BLOCKED = 3
    """A finding forbids it."""
    UNKNOWN = 4
    """Something that is needed could not be asked."""
    BROKEN_PIPE = 141
    """Whoever read the output went away; what a shell reports for it."""
    INTERRUPTED = 130
    """Ctrl-C; what a shell reports for it."""


def exit_of(error: HeroError) -> Exit:
    """Return the exit code of an error that ended a command."""
    match error:
        case ConfigurationError():
            return Exit.USAGE
        case ServiceError():
            return Exit.UNKNOWN
        case _:
            return Exit.FAILED
