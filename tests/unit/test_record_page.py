"""docs/record.md: the program that it prints verifies a record, and finds what is wrong with one."""

import json
import re
import subprocess
import sys
from pathlib import Path

from bot.model.chronicle import head_of
from bot.model.value import RunId, Value
from tests.fakes.chronicles import entries_of

PAGE = (Path(__file__).parents[2] / "docs" / "record.md").read_text(encoding="utf-8")
RUN = RunId("hero-8b")


def verified(lines: list[str]) -> subprocess.CompletedProcess[str]:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    return subprocess.run(
        [sys.executable, "-c", program], input="\n".join(lines), capture_output=True, text=True, check=False, timeout=60
    )


def test_the_printed_program_agrees_with_hero_about_a_record() -> None:
    entries = entries_of(RUN)
    lines = [json.dumps(each.row()) for each in entries]

    whole = verified(lines)
    changed = verified([line.replace("8123", "8124") for line in lines])
    dropped = verified([*lines[:4], *lines[5:]])

    assert whole.stdout == f"whole; head {head_of(RUN, entries)}\n"
    assert "AssertionError: 4" in changed.stderr
    assert "AssertionError: 6" in dropped.stderr


def test_every_kind_of_entry_is_explained() -> None:
    from bot.model import chronicle  # noqa: PLC0415 - for its classes alone

    kinds = {
        each.model_fields["kind"].default
        for each in vars(chronicle).values()
        if isinstance(each, type) and issubclass(each, Value) and "kind" in each.model_fields
    } - {chronicle.Entry.model_fields["kind"].default}

    assert {kind for kind in kinds if f"| `{kind}` |" not in PAGE} == set()
    assert len(kinds) == 18
