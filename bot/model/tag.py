"""A tag of a git repository: where a finished run is sealed."""

from bot.model.value import Value


class Tag(Value):
    """A tag as the repository has it."""

    name: str
    sha: str
    """Of the commit, whatever kind of tag it is."""
