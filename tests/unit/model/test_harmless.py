"""Which paths cannot change what is trained: the globs of the settings and of contracts, read as a ``.gitignore``."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.harmless import HARMLESS, is_harmless, literally, unharmless


@pytest.mark.parametrize(
    "path",
    [
        "README.md", "docs/images/a.png", "lib/docs/x.py", "tests/test_model.py", "lib/levanter/tests/data.json",
        "src/model_test.py", "run.log", "logs/today.txt", "wandb/run-1/files/config.yaml", ".github/workflows/ci.yaml",
        "src/__pycache__/model.cpython-312.pyc", "hero.toml", "hero.db-wal", "runs/hero-1.toml", "LICENSE",
    ],
)  # fmt: skip
def test_what_the_procedure_calls_harmless_is(path: str) -> None:
    assert is_harmless(path, HARMLESS)


@pytest.mark.parametrize(
    "path",
    [
        "train.py", "src/model.py", "data/mixture.yaml", "config/run.toml", "uv.lock", "requirements.txt", "Dockerfile",
        "experiments/other.py", "src/logs/loss.py", "lib/wandb/model.py", "src/latest.py", "mdocs/x.py",
        "testsuite/x.py", "README.md.py", "tests", "docs", "src/contest_model.py", "runs/train.py",
    ],
)  # fmt: skip
def test_what_could_change_the_training_is_not(path: str) -> None:
    assert not is_harmless(path, HARMLESS)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.md", ("a.md", "x/y/a.md"), ("a.mdx", "a.MD")),
        ("/*.md", ("a.md",), ("x/a.md",)),
        ("experiments/other/", ("experiments/other/a.py",), ("experiments/other", "x/experiments/other/a.py")),
        ("a/*/c", ("a/b/c", "a/b/c/d"), ("a/c", "a/b/b/c")),
        ("a/**/c", ("a/c", "a/b/c", "a/b/b/c"), ("ac", "a/bc")),
        ("**/gen/*.py", ("gen/a.py", "x/gen/a.py"), ("gen/x/a.txt",)),
        ("step-[0-9]", ("step-1", "x/step-2/y"), ("step-12", "step-x")),
        ("[!a].py", ("b.py",), ("a.py",)),
        ("a?c", ("abc",), ("ac", "a/c")),
        ("a+(b).py", ("a+(b).py",), ("aab.py",)),
        ("new\nline", ("new\nline", "x/new\nline"), ("new",)),
        ("", (), ("a", "")),
        ("/", (), ("a",)),
        ("[z-a]", (), ("z", "a", "[z-a]x")),
    ],
)
def test_globs_read_as_in_a_gitignore(glob: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert [path for path in yes if not is_harmless(path, (glob,))] == []
    assert [path for path in no if is_harmless(path, (glob,))] == []


@given(st.text(alphabet=string.printable + "é[]*?!^\\", min_size=1, max_size=12).filter(lambda p: p.strip("/")))
def test_a_literal_path_excuses_itself_and_what_is_below_it_and_nothing_else(path: str) -> None:
    glob = literally(path)
    inside = path.strip("/")

    assert is_harmless(inside, (glob,))
    assert is_harmless(f"{inside}/weights", (glob,))
    assert not is_harmless(f"x{inside}", (glob,))
    assert not is_harmless(f"{inside}x", (glob,))
    assert not is_harmless(f"x{inside}/{inside}", (glob,))  # "x/x" would be below "x"


@given(st.lists(st.text(max_size=8), max_size=4), st.text(max_size=12))
def test_no_glob_breaks_the_match_and_the_two_questions_agree(globs: list[str], path: str) -> None:
    assert (unharmless((path,), globs) == ()) is is_harmless(path, globs)
