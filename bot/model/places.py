"""The places a run writes to, in one spelling, so that two contracts can be compared; nothing is looked up."""

import posixpath
from collections.abc import Iterator

from bot.model.contract import Contract


def normalised(place: str, checkout: str) -> str:
    """Return a place in one spelling: an address without needless slashes, or an absolute path."""
    scheme, found, rest = place.partition("://")
    if found and scheme != "file":
        return f"{scheme.lower()}://{'/'.join(part for part in rest.split('/') if part)}"
    return posixpath.normpath(posixpath.join(checkout, rest if found else place))


def overlaps(one: str, other: str) -> bool:
    """Whether two normalised places are the same, or one lies within the other."""
    return one == other or one.startswith(f"{other.rstrip('/')}/") or other.startswith(f"{one.rstrip('/')}/")


def places_of(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield every place that a contract names to write to, by its field."""
    named = [
        ("output_root", contract.output_root),
        *(("checkpoint_roots", each) for each in contract.roots if each != contract.resume_root),
        ("resume_root", contract.resume_root),
        ("export_root", contract.export_root),
        ("traces_root", contract.traces_root),
        ("session_root", contract.session_root),
    ]
    for field, place in named:
        if place:
            yield field, normalised(place, contract.checkout)
