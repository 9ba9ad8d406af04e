"""The recipes of docs/ are followed to the letter in a copy of the project, and end in a passing test."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = {
    "adding-a-check.md": (
        "tests/unit/checks/test_schedule.py",
        "tests/unit/checks/test_engine.py::test_ids_are_unique_and_the_ones_that_users_rely_on_are_there",
        "tests/unit/checks/test_engine.py::test_the_page_is_the_one_that_the_checks_make",
    ),
    "adding-a-source.md": ("tests/contract/test_slurm.py",),
    "adding-a-channel.md": ("tests/contract/test_journal_channel.py",),
}

_BLOCK = re.compile(r"^```(?P<language>python|diff)\n# (?P<path>\S+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def patched(text: str, diff: str) -> str:
    """Return the text after a diff of one place: lines that stay, go or come by their first character."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"the recipe's place is not there exactly once:\n{before}"
    return text.replace(before, after)


def follow(recipe: Path, project: Path) -> None:
    for block in _BLOCK.finditer(recipe.read_text(encoding="utf-8")):
        file = project / block["path"]
        if block["language"] == "python":
            assert not file.exists(), f"{block['path']} is there already; the recipe is about something new"
            file.write_text(block["body"], encoding="utf-8")
        else:
            file.write_text(patched(file.read_text(encoding="utf-8"), block["body"]), encoding="utf-8")


def python(project: Path, *arguments: str) -> str:
    """Run Python in the project's own directory, where its packages come before a Hero that is installed."""
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_ends_in_a_passing_test(recipe: str, tmp_path: Path) -> None:
    for folder in ("bot", "handlers", "checks", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "golden"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    follow(ROOT / "docs" / recipe, tmp_path)

    joined = python(tmp_path, "-c", "import bot.building; print(bot.building.__file__)")
    (tmp_path / "docs" / "checks.md").write_text(python(tmp_path, "-m", "checks.page"), encoding="utf-8")
    told = python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RECIPES[recipe])

    assert Path(joined.strip()).is_relative_to(tmp_path)
    assert " passed" in told
