"""What an object store says of a bucket: where it is, and which of its rules delete what; and whether a prefix is used.

Blocking: callers run these in worker threads. To read a bucket's rules is a permission of its own, which many accounts
that read and write its objects do not have: that is told as "not told", and never as "no rules".
"""

from collections.abc import Iterator
from typing import Any, Protocol

import fsspec

from bot.model.value import Value
from bot.sources.gaps import is_forbidden

_ALL_CLASSES = frozenset({"STANDARD"})
_EU = "EU"
_FIRST_REGION = "us-east-1"
_NARROW = ("numNewerVersions", "daysSinceNoncurrentTime", "noncurrentTimeBefore", "matchesSuffix")
"""Conditions under which a rule does not delete everything below its prefix, or nothing that is current."""


class DeleteRule(Value):
    """A lifecycle rule that deletes whatever lies below a prefix after some days."""

    prefix: str
    """Empty: the whole bucket."""
    days: int


class Bucket(Value):
    """What its service says of a bucket."""

    is_there: bool
    region: str = ""
    """In lower case; empty when the service may not say."""
    rules: tuple[DeleteRule, ...] | None = None
    """None when they may not be read."""

    def expires_days(self, key: str) -> int | None:
        """Return after how many days everything below a key is deleted; None when no rule does that."""
        below = f"{key.strip('/')}/"
        return min((rule.days for rule in self.rules or () if below.startswith(rule.prefix)), default=None)


class Store(Protocol):
    """An object store with buckets."""

    def bucket(self, name: str) -> Bucket:
        """Ask for a bucket.

        Raises:
            OSError: or whatever the SDK raises; not for what is only not permitted.
        """
        ...

    def holds(self, bucket: str, key: str) -> bool:
        """Return whether an object has that key, or lies below it; an empty one for the directory does not count."""
        ...


def store_at(address: str, options: dict[str, dict[str, Any]]) -> Store:
    """Return the store of an address such as ``gs://bucket/key``.

    Raises:
        ImportError: the package that reads it is not installed.
    """
    protocol = address.partition("://")[0].lower()
    files = fsspec.filesystem(protocol, use_listings_cache=False, **options.get(protocol, {}))
    return _Google(files) if protocol in {"gs", "gcs"} else _Amazon(files)


class _Google:
    def __init__(self, files: Any) -> None:
        self._files = files

    def bucket(self, name: str) -> Bucket:
        try:
            told = self._files.call("GET", "b/{}", name, json_out=True)
        except FileNotFoundError:
            return Bucket(is_there=False)
        except Exception as error:
            if is_forbidden(error):
                return Bucket(is_there=True)
            raise
        return Bucket(
            is_there=True,
            region=str(told.get("location") or "").lower(),
            rules=tuple(google_rules(told.get("lifecycle") or {})),
        )

    def holds(self, bucket: str, key: str) -> bool:
        return any(
            _counts(str(item["name"]), int(item.get("size") or 0), key)
            for prefix in _prefixes(key)
            for item in self._files.call("GET", "b/{}/o", bucket, prefix=prefix, maxResults=2, json_out=True).get(
                "items", ()
            )
        )


class _Amazon:
    def __init__(self, files: Any) -> None:
        self._files = files

    def bucket(self, name: str) -> Bucket:
        try:
            told = self._files.call_s3("get_bucket_location", Bucket=name)
        except Exception as error:
            if _code(error) == "NoSuchBucket":
                return Bucket(is_there=False)
            if not is_forbidden(error):
                raise
            region = ""
        else:
            region = told.get("LocationConstraint") or _FIRST_REGION
        return Bucket(is_there=True, region="eu-west-1" if region == _EU else region, rules=self._rules(name))

    def _rules(self, name: str) -> tuple[DeleteRule, ...] | None:
        try:
            told = self._files.call_s3("get_bucket_lifecycle_configuration", Bucket=name)
        except Exception as error:
            if _code(error) == "NoSuchLifecycleConfiguration":
                return ()
            if is_forbidden(error):
                return None
            raise
        return tuple(amazon_rules(told))

    def holds(self, bucket: str, key: str) -> bool:
        return any(
            _counts(str(item["Key"]), int(item.get("Size") or 0), key)
            for prefix in _prefixes(key)
            for item in self._files.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=2).get(
                "Contents", ()
            )
        )


def google_rules(lifecycle: dict[str, Any]) -> Iterator[DeleteRule]:
    """Yield the rules of a bucket's ``lifecycle`` that delete everything below a prefix by its age. Pure."""
    for rule in lifecycle.get("rule", ()):
        condition = rule.get("condition") or {}
        classes = condition.get("matchesStorageClass")
        if (rule.get("action") or {}).get("type") != "Delete" or condition.get("age") is None:
            continue
        if any(condition.get(each) for each in _NARROW) or condition.get("isLive") is False:
            continue
        if classes and not _ALL_CLASSES & set(classes):
            continue
        for prefix in condition.get("matchesPrefix") or ("",):
            yield DeleteRule(prefix=str(prefix), days=int(condition["age"]))


def amazon_rules(lifecycle: dict[str, Any]) -> Iterator[DeleteRule]:
    """Yield the rules of a lifecycle configuration that delete everything below a prefix by its age. Pure."""
    for rule in lifecycle.get("Rules", ()):
        days = (rule.get("Expiration") or {}).get("Days")
        chosen = rule.get("Filter") or {}
        both = chosen.get("And") or {}
        is_narrow = any(key in each for each in (chosen, both) for key in ("Tag", "Tags", "ObjectSizeGreaterThan"))
        if rule.get("Status") != "Enabled" or days is None or is_narrow:
            continue
        prefix = chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or ""
        yield DeleteRule(prefix=str(prefix), days=int(days))


def _code(error: BaseException) -> str:
    response = getattr(error.__cause__ or error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _prefixes(key: str) -> tuple[str, ...]:
    """Below it, then itself: among all keys that begin so, the very key comes first."""
    return (f"{key}/", key) if key else ("",)


def _counts(name: str, size: int, key: str) -> bool:
    if name == f"{key}/":
        return size > 0
    return not key or name == key or name.startswith(f"{key}/")
