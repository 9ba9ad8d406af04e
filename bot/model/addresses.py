"""What an address says of itself by its spelling: whether it is pinned, whose it is, how long what lies there lives.

Nothing is looked up. ``bot.model.places`` compares two places; here is what one of them means in a house with buckets.
"""

import re
from collections.abc import Iterator

from bot.model.contract import Contract
from bot.model.preflight import LaunchRules

STORES = frozenset({"gs", "gcs", "s3", "s3a"})
"""The schemes of object stores: a path of such an address begins with a bucket."""

_OPEN = (
    (re.compile(r"\$[A-Za-z_({]|`"), "a variable"),
    (re.compile(r"\{[^/]*\}"), "a placeholder"),
    (re.compile(r"%\((?:\w+)\)|%[-#]?[YmdHMSjyBbTFs](?![0-9A-Fa-f])"), "a date or a format"),
    (re.compile(r"<[^/>]*>"), "a gap to be filled in"),
    (re.compile(r"(?:^|/)~"), "a home directory"),
    (re.compile(r"[*?]"), "a pattern"),
    (re.compile(r"(?:^|[/_.-])(?:latest|newest)(?:/|$)", re.IGNORECASE), "the newest of something"),
    (re.compile(r"(?:^|/)\.\.(?:/|$)"), "a step up"),
    (
        re.compile(r"[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]"),
        "a character that is not seen",
    ),
    (re.compile(r"^\s|\s$"), "a blank at an end"),
)
_OPEN_IN_STORE = (
    (re.compile(r"(?<=.)//"), "an empty part"),
    (re.compile(r"/\.(?:/|$)"), "a dot as a part"),
)
"""On a disk these mean nothing; in a bucket they are part of the key, and what was meant is another one."""
_TTL = re.compile(r"(?:^|/)ttl=(\d{1,5})d(?:/|$)", re.IGNORECASE)
_USER = re.compile(r"(?:^|/)users/([^/]+)(?:/|$)")
_VERSION = re.compile(
    r"[-_.@][0-9a-f]{6,64}$|[-_@/]v\d+(?:\.\d+)*$|[-_.@/]\d{4}-?\d{2}-?\d{2}$|@[\w.-]+$|[-_]\d+\.\d+(?:\.\d+)*$",
    re.IGNORECASE,
)


def is_remote(address: str) -> bool:
    """Whether it is an address of some service, and no path."""
    scheme, found, _ = address.partition("://")
    return bool(found) and scheme.lower() not in {"file", "local"}


def is_in_store(address: str) -> bool:
    """Whether it lies in a bucket."""
    return is_remote(address) and address.partition("://")[0].lower() in STORES


def is_path(dataset: str) -> bool:
    """Whether what a contract calls a dataset is an address or a path, and no mere name."""
    return "://" in dataset or dataset.startswith(("/", "./", "../"))


def open_mark(address: str) -> str:
    """Return what keeps an address from being one fixed place, in words; empty when it is pinned."""
    rest = address.partition("://")[2] or address
    for pattern, what in (*_OPEN, *(_OPEN_IN_STORE if is_in_store(address) else ())):
        found = pattern.search(rest)
        if found:
            return ", ".join((what, *(each for each in (found[0].strip("/"),) if each.isprintable() and each.strip())))
    return ""


def is_of_house(address: str, rules: LaunchRules) -> bool:
    """Whether it lies below the house's prefix, which may be an address or a path."""
    prefix = rules.prefix.rstrip("/")
    return bool(prefix) and address.startswith(f"{prefix}/")


def key_of(address: str, rules: LaunchRules) -> str:
    """Return what lies below the house's prefix, or else below the bucket, without slashes around it."""
    prefix = rules.prefix.rstrip("/")
    if prefix and (address == prefix or address.startswith(f"{prefix}/")):
        return address[len(prefix) :].strip("/")
    rest = address.partition("://")[2]
    return rest.partition("/")[2].strip("/")


def cluster_prefix(address: str, rules: LaunchRules) -> str:
    """Return the cluster's prefix that an address lies below, such as ``iris/``; empty when below none.

    Only what is remote, or below the house's prefix, can be the cluster's.
    """
    if not is_remote(address) and not is_of_house(address, rules):
        return ""
    key = "/".join(part for part in key_of(address, rules).split("/") if part)
    return next((each for each in rules.cluster_prefixes if f"{key}/".startswith(f"{each.strip('/')}/")), "")


def ttl_days(address: str) -> int | None:
    """Return the days of a ``ttl=30d`` in a path; None without one."""
    found = _TTL.search(address.partition("://")[2] or address)
    return int(found[1]) if found else None


def is_temporary(address: str, rules: LaunchRules) -> bool:
    """Whether a path says that what lies there is deleted by itself, as its house writes it."""
    key = f"/{key_of(address, rules)}/" if is_remote(address) else f"{address}/"
    return any(f"/{each.lstrip('/')}" in key for each in rules.temporary_prefixes)


def user_of(address: str, rules: LaunchRules) -> str:
    """Return NAME of ``users/NAME/``; empty when there is none."""
    found = _USER.search(key_of(address, rules))
    return found[1] if found else ""


def callers(contract: Contract) -> tuple[str, ...]:
    """Return under whose names the run may write: the user of its job, then its DRI."""
    job = contract.orchestrator.job_id
    user = job.split("/")[1] if job else ""
    return tuple(dict.fromkeys(each for each in (user, contract.dri) if each))


def is_own(address: str, contract: Contract, rules: LaunchRules) -> bool:
    """Whether it lies below the caller's own ``users/NAME/`` of the house."""
    key = key_of(address, rules)
    return (not rules.prefix or is_of_house(address, rules)) and any(
        key.startswith(f"users/{name}/") for name in callers(contract)
    )


def is_versioned(address: str) -> bool:
    """Whether the name ends with a hash, a version, a date or a revision: such data is not written again."""
    parts = [part for part in (address.partition("://")[2] or address).split("/") if part]
    return any(_VERSION.search(f"/{part}") for part in parts[1:] or parts)


def step_in(address: str) -> int | None:
    """Return N of an address whose last part is ``step-N``, with or without a slash at its end."""
    found = re.fullmatch(r"step-(\d{1,18})", last_part(address), re.ASCII)
    return int(found[1]) if found else None


def last_part(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def parent_of(address: str) -> str:
    """Return the directory that an address lies in."""
    return address.rstrip("/").rpartition("/")[0]


def addresses_of(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield every address that is looked at before a launch, as the contract writes it, by its field."""
    yield "output_root", contract.output_root
    stated = [each for each in contract.checkpoint_roots if each != contract.resume_root]
    for number, root in enumerate(stated):
        yield f"checkpoint_roots.{number}", root
    for field in ("resume_root", "export_root", "traces_root", "session_root"):
        address = getattr(contract, field)
        if address:
            yield field, address
    for number, dataset in enumerate(contract.datasets):
        if is_path(dataset):
            yield f"datasets.{number}", dataset
