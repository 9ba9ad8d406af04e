"""Config drift on a relaunch: what the command would launch with now, against what the launch before resolved."""

from collections.abc import Iterator

from bot.model.contract import Basis
from bot.model.drift import Change, changes_since
from bot.model.preflight import PreflightFinding, PreflightValue, Preparation, Weight
from bot.model.reading import Known, Unknown
from bot.model.value import CheckId
from checks.preflight.configs import is_added, is_compared, is_real, say_changes
from checks.preflight.house import toml_of
from checks.preflight.item import Item, Told, stated, unseen

_NAME = "config_drift"


def judge(prepared: Preparation) -> Told:
    """Refuse a relaunch that is configured otherwise, and name what differs by agreement."""
    if prepared.is_first:
        return Told()
    match prepared.coming:
        case Unknown() as gap:
            what = "what the command launches with"
            return Told(
                values=(stated(_NAME, "not known", Basis.INFERRED),),
                findings=(unseen(DRIFT.id, gap, what),),
            )
        case Known(value=None):
            return Told(values=(_uncompared("the contract names no [config] launch"),))
        case Known() if prepared.launched_before is None:
            return Told(values=(_uncompared("no configuration of a launch before is on record"),), findings=_bare())
        case Known():
            return _compared(prepared)


def _uncompared(why: str) -> PreflightValue:
    return stated(_NAME, f"not compared: {why}", Basis.INFERRED)


def _bare() -> tuple[PreflightFinding, ...]:
    message = "the launch before never had its configuration read, so nothing is known of what changed since"
    fix = "name [config] file, where the trainer writes what it resolved; config.drift compares from then on"
    return (DRIFT.finding(Weight.NOTE, message, fix),)


def _compared(prepared: Preparation) -> Told:
    changes = _changes(prepared)
    intended = [each for each in changes if each.is_intended]
    others = [each for each in changes if not each.is_intended]
    said = say_changes(changes) if changes else "none"
    return Told(
        values=(stated(_NAME, said, Basis.MEASURED),),
        findings=(*_unintended(prepared, others), *_intended(intended)),
        changes=tuple(f"[config] as intended: {each.line}" for each in intended),
    )


def _changes(prepared: Preparation) -> list[Change]:
    before, coming = prepared.launched_before, prepared.coming
    if before is None or isinstance(coming, Unknown) or coming.value is None:
        return []
    found = changes_since(before, coming.value, prepared.contract.config.intended)
    return [each for each in found if (is_compared(each) and is_real(each)) or is_added(each, before)]


def _unintended(prepared: Preparation, changes: list[Change]) -> Iterator[PreflightFinding]:
    before = prepared.launched_before
    if not changes or before is None:
        return
    keys = ", ".join(f'"{each.key}"' for each in changes[:3])
    message = f"the relaunch would be configured otherwise than the launch before (measured): {say_changes(changes)}"
    fix = (
        f"put back what was not meant; what was agreed on: [config] intended = [{keys}] in {toml_of(prepared.contract)}"
    )
    if before.is_trackers:
        aside = f"; {before.origin} is the tracker's copy, which writes some values otherwise"
        yield DRIFT.finding(Weight.ASKS, message + aside, fix)
    else:
        yield DRIFT.finding(Weight.BLOCKS, message, fix)


def _intended(changes: list[Change]) -> Iterator[PreflightFinding]:
    if changes:
        message = f"differs from the launch before as intended: {say_changes(changes)}"
        yield DRIFT.finding(Weight.NOTE, message, "nothing to do; the request names it")


DRIFT = Item(
    id=CheckId("launch.drift"),
    title="A relaunch is configured as the launch before",
    source='manage-hero-run, "What Can Go Wrong": config drift on relaunch',
    judge=judge,
)
