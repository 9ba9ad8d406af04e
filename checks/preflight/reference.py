"""The reference job: what the new run must preserve of it, held against what the command launches with."""

from collections.abc import Iterable, Iterator

from bot.model.contract import Basis
from bot.model.drift import Change, ConfigShape, changes_since
from bot.model.launched import WORDS, LaunchedConfig
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.reading import Known, Unknown
from bot.model.value import CheckId
from checks.preflight.configs import is_added, is_compared, is_real, say_changes
from checks.preflight.house import house_rule, toml_of
from checks.preflight.item import Item, Told, stated, unseen


def judge(prepared: Preparation) -> Told:
    """Refuse a launch that does not preserve what it has to."""
    if prepared.contract.config.reference is None:
        return Told(values=(stated("reference", None),))
    if isinstance(prepared.reference, Unknown):
        what = f"the reference job's configuration, {prepared.contract.config.reference},"
        return Told(values=(_value(prepared),), findings=(unseen(REFERENCE.id, prepared.reference, what),))
    if isinstance(prepared.coming, Unknown):
        finding = unseen(REFERENCE.id, prepared.coming, "what the command launches with")
        return Told(values=(_value(prepared),), findings=(finding,))
    if prepared.coming.value is None or prepared.reference.value is None:
        return Told(values=(_value(prepared),), findings=(_incomparable(prepared),))
    return _compared(prepared, prepared.reference.value, prepared.coming.value)


def _value(prepared: Preparation) -> PreflightValue:
    named = prepared.contract.config.reference
    found = prepared.reference.value if isinstance(prepared.reference, Known) else None
    return stated("reference", f"{named} ({found.origin})" if found else named)


def _incomparable(prepared: Preparation) -> PreflightFinding:
    message = f"nothing can be held against the reference {prepared.contract.config.reference}"
    return REFERENCE.finding(
        house_rule(prepared, Weight.ASKS),
        f"{message}: the contract does not name what the command launches with",
        f"name [config] launch in {toml_of(prepared.contract)}",
    )


def _compared(prepared: Preparation, reference: ConfigShape, coming: LaunchedConfig) -> Told:
    changes = list(_changes(prepared, reference, coming))
    intended = [each for each in changes if each.is_intended]
    untold = _untold(prepared, reference, coming)
    kept = [each for each in prepared.contract.config.preserve if each not in untold]
    preserved = stated("preserve", ", ".join(kept) or "none", Basis.MEASURED)
    return Told(
        values=(_value(prepared), preserved),
        findings=(
            *_differing(prepared, reference, [each for each in changes if not each.is_intended]),
            *_unverified(prepared, untold),
            *_agreed(intended),
        ),
        changes=tuple(f"differs from the reference as intended: {each.line}" for each in intended),
    )


def _changes(prepared: Preparation, reference: ConfigShape, coming: LaunchedConfig) -> Iterator[Change]:
    """Return what has to be preserved and is not; by key, and for a word of one value by that."""
    config = prepared.contract.config
    kept = tuple(key for each in config.preserve for key in _keys(each, reference.words, coming.words))
    told: set[str] = set()
    for each in changes_since(reference, coming, config.intended):
        if not _is_below(each.key, kept) or each.key.endswith("*"):
            continue
        if (is_compared(each) and is_real(each)) or is_added(each, reference):
            told.add(each.word)
            yield each
    held = LaunchedConfig(origin=reference.origin, values=reference.values, words=reference.words)
    for word in config.preserve:
        key, other = held.key(word), coming.key(word)
        if word not in WORDS or key is None or other is None or key == other or WORDS[word] in told:
            continue
        change = Change(
            word=WORDS[word],
            key=f"{key}, here {other}",
            old=held.values[key],
            new=coming.values[other],
            is_intended=_is_below(key, config.intended) or _is_below(other, config.intended),
        )
        if is_real(change) and not _shares_key(word, held, coming):
            yield change


def _shares_key(word: str, held: LaunchedConfig, coming: LaunchedConfig) -> bool:
    """Whether both have one and the same key for a word; then that one was compared."""
    return bool({*held.words.get(word, ())} & {*coming.words.get(word, ())})


def _untold(prepared: Preparation, reference: ConfigShape, coming: LaunchedConfig) -> tuple[str, ...]:
    """Return what has to be preserved of which one of the two says nothing, or only a digest over more than that."""
    both = (tuple(reference.values), tuple(coming.values))
    found: list[str] = []
    for each in prepared.contract.config.preserve:
        beginnings = _keys(each, reference.words, coming.words)
        has = [any(_is_below(key, beginnings) for key in keys) for keys in both]
        if each in WORDS and not has[0] and not has[1]:
            continue  # neither of them has such a thing
        if not all(has):
            found.append(each)
    return tuple(found)


def _differing(prepared: Preparation, reference: ConfigShape, changes: list[Change]) -> Iterator[PreflightFinding]:
    if not changes:
        return
    message = f"differs from the reference {reference.origin} in what has to be preserved: {say_changes(changes)}"
    key = changes[0].key.partition(", here ")[0]
    fix = f'take the reference\'s value over; or [config] intended = ["{key}", …] in {toml_of(prepared.contract)}'
    if reference.is_trackers:
        weight, message = Weight.ASKS, f"{message} (the tracker's copy, which writes some values otherwise)"
    else:
        weight = Weight.BLOCKS
    yield REFERENCE.finding(house_rule(prepared, weight), message, fix)


def _unverified(prepared: Preparation, untold: Iterable[str]) -> Iterator[PreflightFinding]:
    named = ", ".join(WORDS.get(each, each) for each in untold)
    if named:
        message = f"whether it is as in the reference cannot be told, as one of the two does not say it: {named}"
        fix = "write it into the configuration that is launched, or leave it out of [config] preserve"
        yield REFERENCE.finding(house_rule(prepared, Weight.ASKS), message, fix)


def _agreed(changes: list[Change]) -> Iterator[PreflightFinding]:
    if changes:
        message = f"differs from the reference as intended: {say_changes(changes)}"
        yield REFERENCE.finding(Weight.NOTE, message, "nothing to do; the request names it")


def _keys(kept: str, *tables: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the beginnings of keys that an entry of ``preserve`` stands for."""
    if kept not in WORDS:
        return (kept,)
    return tuple(dict.fromkeys(key for table in tables for key in table.get(kept, ())))


def _is_below(key: str, beginnings: Iterable[str]) -> bool:
    return any(key == each or key.startswith(f"{each}.") for each in beginnings)


REFERENCE = Item(
    id=CheckId("launch.reference"),
    title="What has to be preserved is as in the reference job",
    source='manage-hero-run, "Launch": inspect the reference job for the fields that the new run must preserve',
    judge=judge,
)
