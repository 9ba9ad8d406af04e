"""An update as lines for a terminal: plain text, colours added by the channel."""

from bot.model.update import Update, UpdateKind
from bot.render.chart import spark_lines
from bot.render.text import clean
from bot.render.words import SEVERITY_SIGNS, first_line, standing_facts

_LINE = 400
_MOST_EVIDENCE = 12
_TERSE = {UpdateKind.ACTION_PROGRESS, UpdateKind.REQUEST_ANSWERED}


def console_lines(update: Update, timezone: str) -> tuple[str, ...]:
    """Return the lines of an update; what nobody asked for is cut after a dozen lines of evidence, and said to be."""
    lines = [f"{SEVERITY_SIGNS[update.severity]} {clean(first_line(update), _LINE)}"]
    if update.standing is not None and update.kind not in _TERSE:
        facts = standing_facts(update.standing, timezone)
        lines.append("    " + clean(", ".join(f"{name} {value}" for name, value in facts if name != "step"), _LINE))
    shown = update.evidence if update.kind is UpdateKind.ANSWER else update.evidence[:_MOST_EVIDENCE]
    lines.extend(f"    · {clean(line, _LINE)}" for each in shown for line in each.splitlines() or ("",))
    if len(update.evidence) > len(shown):
        lines.append(f"    · … [cut {len(update.evidence) - len(shown)} lines]")
    if update.chart is not None and update.kind is not UpdateKind.ANSWER:
        lines.extend(f"    · {clean(line, _LINE)}" for line in spark_lines(update.chart))
    if update.kind is not UpdateKind.REQUEST_ANSWERED:
        lines.extend(f"    │ {clean(line, _LINE * 4)}" for line in update.plan)
    if update.next:
        lines.append(f"    → {clean(update.next, _LINE * 2)}")
    return tuple(lines)
