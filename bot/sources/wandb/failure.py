"""What the W&B SDK means by its exceptions, told apart into the errors of ``bot.errors``.

The SDK raises one ``CommError`` for a run that does not exist and for a network that is down; only what stands behind
it, in ``exc`` or as the cause, tells the two apart (wandb 0.31, run). So "there is no such run" is an error of its own
here, and nothing else is ever taken for it.
"""

import re
from collections.abc import Iterator

from bot.errors import RefusedError, ServiceError, UnreachableError, UnrecognisedError

SERVICE = "wandb"
_DETAIL_CHARS = 300
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
_ILL_FROM = 500
_PASSING = frozenset({408, 409, 425, 429})


class NoSuchRunError(UnrecognisedError):
    """W&B answered that there is no such run or project, or none that this key may see."""


def of_sdk(error: BaseException) -> ServiceError:
    """Return what an exception of the SDK means."""
    chain = tuple(_behind(error))
    names = {type(each).__name__ for each in chain}
    said = " ".join(str(error).split())[:_DETAIL_CHARS]
    if "RunNotFoundError" in names or any(_is_no_project(each) for each in chain):
        return NoSuchRunError(SERVICE, said)
    if "WandbApiFailedError" in names:
        return _of_answer(next(filter(None, map(_status, chain)), None), said)
    if "AuthenticationError" in names:
        return RefusedError(SERVICE, f"the key cannot be used: {said}; set HERO_WANDB__API_KEY or api_key_file")
    if any(isinstance(each, OSError) for each in chain):
        return UnreachableError(SERVICE, f"the SDK could not work: {said}")
    return UnrecognisedError(SERVICE, f"the SDK broke on the answer: {type(error).__name__}: {said}")


def _of_answer(status: int | None, said: str) -> ServiceError:
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        return RefusedError(SERVICE, f"the key is not accepted (HTTP {status}): {said}; set HERO_WANDB__API_KEY")
    if status == _NOT_FOUND:
        return RefusedError(SERVICE, f"there is no W&B API at this address (HTTP {status}): {said}; set base_url")
    if status is None or status >= _ILL_FROM or status in _PASSING:
        return UnreachableError(SERVICE, said)
    return UnrecognisedError(SERVICE, f"the question was refused (HTTP {status}): {said}")


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and everything that it was made from, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        further = (getattr(each, "exc", None), each.__cause__, each.__context__)
        waiting += [one for one in further if isinstance(one, BaseException)]


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "http_status", None)
    return status if isinstance(status, int) and status > 0 else None


def _is_no_project(error: BaseException) -> bool:
    return type(error) is ValueError and re.match(r"Could not find project ", str(error)) is not None
