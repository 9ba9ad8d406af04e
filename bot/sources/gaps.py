"""From an error of a service to the Unknown that a snapshot keeps."""

from datetime import datetime

from bot.errors import BusyError, DeadlineError, RefusedError, ServiceError, UnreachableError, UnrecognisedError
from bot.model.reading import Gap, Unknown
from bot.regular_files import NotRegularError

_DETAIL_CHARS = 2000
_EXTRAS = {"gs": "gcs", "gcs": "gcs", "s3": "s3", "s3a": "s3"}
"""The extras of ``pyproject.toml`` that read addresses of these schemes."""


def gap_of(error: ServiceError) -> Gap:
    """Return why nothing is known, from the kind of the error alone."""
    match error:
        case DeadlineError():
            return Gap.TIMEOUT
        case RefusedError():
            return Gap.REFUSED
        case UnrecognisedError():
            return Gap.UNRECOGNISED
        case BusyError():
            return Gap.BUSY
        case _:
            return Gap.UNREACHABLE


def unknown_of(error: ServiceError, at: datetime) -> Unknown:
    """Return the reading that says so."""
    return Unknown(reason=gap_of(error), detail=error.detail[:_DETAIL_CHARS], at=at)


def refused_by_system(service: str, error: OSError) -> ServiceError:
    """Return what the operating system's no means: permission and wrong paths do not mend themselves, the rest may."""
    if isinstance(error, NotRegularError):
        return UnrecognisedError(service, f"{error.filename} is no regular file; remove it")
    detail = f"{error.filename or 'a file'} cannot be read: {error.strerror or type(error).__name__}"
    wrong = (PermissionError, NotADirectoryError, IsADirectoryError, FileNotFoundError)
    return RefusedError(service, detail) if isinstance(error, wrong) else UnreachableError(service, detail)


def refused_by_store(service: str, address: str, error: Exception) -> ServiceError:
    """Say what a store's own error means; none of them means "there is nothing" (field report R25)."""
    kind = type(error).__name__
    module = type(error).__module__
    detail = f"{address}: {kind}: {str(error)[:300]}"
    is_about_us = module.startswith(("google.auth", "botocore")) and "Endpoint" not in kind
    if isinstance(error, NotADirectoryError) or is_forbidden(error) or is_about_us:
        return RefusedError(service, f"{detail}; what is there cannot be verified until it may be read")
    if isinstance(error, ImportError):
        scheme = address.partition("://")[0]
        package = _EXTRAS.get(scheme.lower())
        how = f"pip install 'hero-bot[{package}]'" if package else f"the package for fsspec that reads {scheme}://"
        return RefusedError(service, f"{address} cannot be read here: its package is missing; install it: {how}")
    if isinstance(error, OSError):
        return UnreachableError(service, detail)
    if isinstance(error, ValueError | KeyError):
        return UnrecognisedError(service, detail)
    return UnreachableError(service, detail)


def is_forbidden(error: BaseException) -> bool:
    """Whether a store's error says that the account may not; gcsfs tells a 403 in the text alone."""
    status = getattr(error, "code", getattr(error, "status", None))
    return isinstance(error, PermissionError) or status in {401, 403} or str(error).startswith("Forbidden")
