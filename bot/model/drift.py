"""How one launch's configuration differs from another's, and what is remembered of one to say so later. Pure.

What differs at every launch anyway is left out by rule: keys that name this launch, its hosts or its time, and, in
values that no word of Hero's covers, the moments and unique ids within a text.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby

from bot.model.launched import WORDS, LaunchedConfig
from bot.model.value import Value

SHAPE_CHARS = 7_000
"""What a remembered shape may hold at most; two of them are one check's memory."""

_LONGEST = 160
"""A longer value is remembered by its digest."""
_FEWEST_FOLDS = 24
"""With more beginnings than this, all that finds no room is folded into one."""
_KEPT_FOR_FOLDS = 1_600
_EVERYTHING = ""
_DIGEST_CHARS = 16
_KEY_CHARS = 300

_VOLATILE = frozenset(
    {
        "address", "attempt", "coordinator_address", "created_at", "date", "datetime", "execution_id", "execution_uid",
        "hardware_topology", "host", "hostname", "id", "ip", "iris_job_id", "job_id", "launch_time", "launched_at",
        "node", "node_name", "pid", "port", "process_id", "restart_count", "run_id", "slurm_job_id", "start_time",
        "started_at", "task_id", "time", "timestamp", "uid", "uuid",
    }
)  # fmt: skip
"""Last parts of keys that name one launch. Whether the identity stayed is another check's: tracker.identity."""

_IDENTITY = ("", WORDS["tracker"])
"""The words whose keys and values may name one launch; below all others everything counts."""

_ONCE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<!\d)20\d{2}-?[01]\d-?[0-3]\d[T_ -][0-2]\d[:_-]?[0-5]\d(?:[:_-]?[0-5]\d(?:\.\d{1,9})?)?"
    r"(?:Z|[+-]\d{2}:?\d{2})?(?!\d)"
    r"|(?<!\d)1[5-9]\d{8}(?:\d{3})?(?!\d)",
    re.IGNORECASE,
)
"""A UUID, a moment with its time of day, seconds or milliseconds since 1970. A bare date may be a data set's."""


class ConfigShape(Value):
    """What is remembered of one launch's configuration, in at most ``SHAPE_CHARS``: what shapes the training.

    Every value counts. Those that Hero has a word for come first; what finds no room is folded, by the first part of
    its key, into one digest: that something there differs is told, though not what.
    """

    origin: str
    is_trackers: bool = False
    values: dict[str, str] = {}
    """JSON text by dotted key; of a long one the digest."""
    folded: dict[str, str] = {}
    """By the first part of the keys: a digest over all of those that are not in ``values``."""
    words: dict[str, tuple[str, ...]] = {}

    @property
    def digest(self) -> str:
        """SHA-256 over what counts."""
        return _sha256({"values": self.values, "folded": self.folded})


class Change(Value):
    """One thing that two launches have otherwise."""

    word: str
    """Hero's word for it, as people say it; empty when there is none."""
    key: str
    """Dotted; of folded values their common beginning with ``.*``, or ``*`` for all of them."""
    old: str | None
    """JSON text, or a digest of what is long; None: not set."""
    new: str | None
    is_intended: bool

    @property
    def line(self) -> str:
        """One line for people."""
        named = f"{self.word} ({self.key})" if self.word else self.key
        if self.key.endswith("*"):
            return " ".join(f"{named}: something differs; so many values are kept by one digest".split())
        return " ".join(f"{named}: {self.old or 'not set'} → {self.new or 'not set'}".split())


def drift_between(old: LaunchedConfig, new: LaunchedConfig, intended: Iterable[str] = ()) -> tuple[Change, ...]:
    """Return what differs between two launches, Hero's words first, in their order.

    Args:
        old: of the launch before.
        new: of this one.
        intended: dotted keys, or beginnings of such, whose change was agreed on.
    """
    return changes_since(shape_of(old, room=None), new, intended)


def changes_since(old: ConfigShape, new: LaunchedConfig, intended: Iterable[str] = ()) -> tuple[Change, ...]:
    """Return what differs from what is remembered of the launch before; see ``drift_between``."""
    agreed = tuple(intended)
    now = _shaping(new)
    left = {key: text for key, text in now.items() if key not in old.values and _fold_of(key, old.folded) is not None}
    folds = _folds(left, {_fold_of(key, old.folded) or _EVERYTHING for key in left}) if left else {}
    before: dict[str, str] = {**old.values, **_named(old.folded)}
    after = {key: text for key, text in now.items() if key not in left}
    after |= _named(folds)
    changes = [
        Change(
            word=_word_of(key, new.words, old.words),
            key=key,
            old=before.get(key),
            new=after.get(key),
            is_intended=_is_below(key.removesuffix(".*"), agreed),
        )
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    ]
    order = list(WORDS.values())
    return tuple(sorted(changes, key=lambda each: (order.index(each.word) if each.word else len(order), each.key)))


def shape_of(config: LaunchedConfig, room: int | None = SHAPE_CHARS) -> ConfigShape:
    """Return what is remembered of a configuration.

    Args:
        config: of one launch.
        room: characters; None: nothing is folded.
    """
    shaping = _shaping(config)
    order = list(WORDS.values())
    words = {key: _word_of(key, config.words) for key in shaping}
    ranked = sorted(shaping, key=lambda key: (order.index(words[key]) if words[key] else len(order), key))
    if room is None:
        return ConfigShape(origin=config.origin, is_trackers=config.is_trackers, values=shaping, words=config.words)
    left = room - len(json.dumps(config.words)) - len(config.origin)
    kept: dict[str, str] = {}
    for place, key in enumerate(ranked):
        needed = len(json.dumps(key)) + len(json.dumps(shaping[key])) + 2
        is_last = place == len(ranked) - 1
        if needed > left - (0 if is_last else _KEPT_FOR_FOLDS):
            break
        kept[key] = shaping[key]
        left -= needed
    rest = {key: text for key, text in shaping.items() if key not in kept}
    tops = {_top(key) for key in rest}
    is_wide = len(tops) > _FEWEST_FOLDS or sum(len(json.dumps(top)) for top in tops) > _KEPT_FOR_FOLDS // 2
    folded = _folds(rest, {_EVERYTHING} if is_wide else tops) if rest else {}
    return ConfigShape(
        origin=config.origin, is_trackers=config.is_trackers, values=kept, folded=folded, words=config.words
    )


def _shaping(config: LaunchedConfig) -> dict[str, str]:
    """Return what counts of a configuration: without what names one launch, long values by their digest."""
    shaping: dict[str, str] = {}
    for key, text in config.values.items():
        word = _word_of(key, config.words)
        if word in _IDENTITY and key.rpartition(".")[2].lower() in _VOLATILE:
            continue
        shaping[key] = _brief(_settled(text) if word in _IDENTITY else text)
    return shaping


def _settled(text: str) -> str:
    """Put a mark for whatever is new at every launch in a text or a list; numbers stay."""
    return _ONCE.sub("…", text) if text[:1] in {'"', "["} else text


def _brief(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]} ({len(text)} characters)"


def _word_of(key: str, *tables: Mapping[str, tuple[str, ...]]) -> str:
    for table in tables:
        for word, said in WORDS.items():
            if _is_below(key.removesuffix(".*"), table.get(word, ())):
                return said
    return ""


def _is_below(key: str, beginnings: Iterable[str]) -> bool:
    return any(key == each or key.startswith(f"{each}.") for each in beginnings)


def _top(key: str) -> str:
    return key.partition(".")[0][:_KEY_CHARS]


def _named(folds: Mapping[str, str]) -> dict[str, str]:
    return {f"{name}.*" if name else "*": text for name, text in folds.items()}


def _fold_of(key: str, folded: Mapping[str, str]) -> str | None:
    """Return the fold that would hold a key; None when nothing was folded there."""
    if _EVERYTHING in folded:
        return _EVERYTHING
    return _top(key) if _top(key) in folded else None


def _folds(rest: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    if _EVERYTHING in names:
        return {_EVERYTHING: _sha256(rest)[:_DIGEST_CHARS]}
    by_top = groupby(sorted(rest.items(), key=lambda item: _top(item[0])), key=lambda item: _top(item[0]))
    return {top: _sha256(dict(items))[:_DIGEST_CHARS] for top, items in by_top}


def _sha256(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
