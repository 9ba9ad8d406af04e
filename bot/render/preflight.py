"""The launch checklist in words: what is decided, what was found, and every value with how it is known."""

from bot.model.contract import Basis
from bot.model.preflight import Decision, PreflightFinding, PreflightReport, Weight

_SIGNS = {Weight.BLOCKS: "✗", Weight.UNKNOWN: "?", Weight.ASKS: "!", Weight.NOTE: "·"}
_ORDER = tuple(_SIGNS)


def decision_words(report: PreflightReport) -> str:
    """Say the decision in one line of plain words."""
    counts = {weight: len(report.of(weight)) for weight in Weight}
    match report.decision:
        case Decision.READY:
            return "ready; nothing stands in the way"
        case Decision.NEEDS_DRI:
            number = counts[Weight.ASKS]
            return f"the DRI has to accept {_count(number, 'thing')} that {'is' if number == 1 else 'are'} not clear"
        case Decision.BLOCKED if report.is_unknown:
            return f"not possible yet: {_count(counts[Weight.UNKNOWN], 'thing')} could not be read"
        case Decision.BLOCKED:
            return f"blocked by {_count(counts[Weight.BLOCKS], 'finding')}"


def finding_lines(report: PreflightReport) -> tuple[str, ...]:
    """Return a line for each finding, the gravest first: ``✗`` blocks, ``?`` is unknown, ``!`` asks, ``·`` notes."""
    ordered = sorted(report.findings, key=lambda each: _ORDER.index(each.weight))
    return tuple(f"{_SIGNS[each.weight]} {each.check}: {say_finding(each)}" for each in ordered)


def finding_sign(finding: PreflightFinding) -> str:
    """``✗``, ``?``, ``!`` or ``·``."""
    return _SIGNS[finding.weight]


def sign_of(findings: tuple[PreflightFinding, ...]) -> str:
    """Return the gravest sign of one item's findings; ``✓`` when nothing but a note was found."""
    grave = [each.weight for each in findings if each.weight is not Weight.NOTE]
    return _SIGNS[min(grave, key=_ORDER.index)] if grave else "✓"


def say_finding(finding: PreflightFinding) -> str:
    """Return what is wrong, and the fix."""
    return f"{finding.message}; fix: {finding.fix}"


def value_lines(report: PreflightReport) -> tuple[str, ...]:
    """Return every value; one that was not simply stated says so."""
    return tuple(
        f"{each.name}: {each.value or 'not stated'}"
        + ("" if each.basis in {Basis.STATED, None} else f" ({each.basis})")
        for each in report.values
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
