"""Nothing is read at an address that holds credentials: asking there hands them to whoever answers. Pure."""

from bot.errors import RefusedError
from bot.redaction import shows_secret


def demand_none(service: str, address: str) -> None:
    """Refuse an address that holds credentials, as ``launch.credentials`` does before a launch.

    Args:
        service: who would have read there.
        address: of a store or a server; a path on a disk is handed to nobody.

    Raises:
        RefusedError: it holds some; they are not repeated.
    """
    if "://" in address and shows_secret(address):
        detail = "the address holds credentials, so nothing is read there; take them out of it in the contract"
        raise RefusedError(service, detail)
