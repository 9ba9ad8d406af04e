"""docs/procedures.md names checks, files and tests that exist, and every check."""

import ast
import re
from pathlib import Path

import pytest

from checks import CHECKS
from checks.check import BROKEN
from checks.preflight import ITEMS
from checks.trial.guards import GUARDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "procedures.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| the ", "| ---"))]
_NAME = re.compile(r"`([^`]+)`")
_CHECK = re.compile(r"[a-z]+\.[a-z_]+")


def cells(row: str) -> tuple[str, list[str], list[str]]:
    """Return what the procedure says, who looks after it and which tests hold that."""
    says, by, held = (cell.strip() for cell in row.strip("| ").split("|"))
    return says, _NAME.findall(by), _NAME.findall(held)


def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS)
def test_a_line_of_the_procedures_names_what_looks_after_it_and_a_test_of_that(row: str) -> None:
    says, by, held = cells(row)
    known = {BROKEN, *(check.id for check in CHECKS), *(item.id for item in ITEMS), *(guard.id for guard in GUARDS)}

    assert says
    assert by
    assert held
    for name in by:
        assert name in known if _CHECK.fullmatch(name) else (ROOT / name).is_file(), name
    for test in held:
        path, _, function = test.partition("::")
        assert (ROOT / path).is_file(), path
        assert function in functions_in(ROOT / path), test


def test_every_check_is_there_for_a_line_of_the_procedures() -> None:
    named = {name for row in ROWS for name in cells(row)[1]}

    assert {check.id for check in CHECKS} <= named


def test_every_guard_of_a_trial_is_there_for_a_line_of_the_deploy_checklist() -> None:
    named = {name for row in ROWS for name in cells(row)[1]}

    assert {guard.id for guard in GUARDS} <= named


def test_what_is_not_covered_is_said() -> None:
    assert len(PAGE.partition("## Not covered\n")[2].splitlines()) > 1
