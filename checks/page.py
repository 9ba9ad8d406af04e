"""The reference page of the checks, ``docs/checks.md``, made from the checks themselves; a test compares the two."""

from datetime import timedelta
from typing import Any

from bot.model.durations import say_duration
from checks import CHECKS
from checks.check import Check

_HEAD = """# What Hero checks

This page is made from the checks in `checks/` (`python -m checks.page > docs/checks.md`); a test compares it with them.

Every check answers *pass*, *fail* with a finding, *unknown* or *not applicable*. Unknown is never a pass: it neither
opens nor closes an incident. `critical` wakes the DRI. [procedures.md](procedures.md) maps each line of the operating
procedures to the checks below and to the tests that hold them, [launching.md](launching.md) is the checklist before a
launch, and [calibration.md](calibration.md) says how well they do on real runs. A run's contract moves a threshold,
with durations as `30m` or `1h30m`:

```toml
[thresholds."progress.stalled"]
quiet = "30m"
```
"""


def checks_page() -> str:
    """Return the page as Markdown: of every check its id, title, severity, readings, thresholds and source."""
    return "\n".join((_HEAD, *(_section(check) for check in CHECKS)))


def _section(check: Check[Any, Any]) -> str:
    rows = [
        f"| `{name}` | {_say(getattr(check.thresholds, name))} | {_cell(field.description or '')} |"
        for name, field in type(check.thresholds).model_fields.items()
    ]
    table = "\n".join(("| threshold | default | meaning |", "| --- | --- | --- |", *rows)) if rows else "No thresholds."
    return (
        f"## {check.id}\n\n{check.title}.\n\n"
        f"- severity: {check.severity}\n"
        f"- reads: {', '.join(check.needs)}\n"
        f"- from: {check.source}\n\n{table}\n"
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", r"\|")


def _say(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"`{_cell(str(each))}`" for each in value) or "none"
    return say_duration(value) if isinstance(value, timedelta) else str(value)


if __name__ == "__main__":
    print(checks_page(), end="")  # noqa: T201 - the page is what the program is for
