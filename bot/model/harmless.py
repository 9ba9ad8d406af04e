"""Which paths of a checkout cannot change what is trained: globs, read as a ``.gitignore`` reads them.

Source of the rule: the run-management procedure, "What can go wrong", item "Wrong code lineage": log files, markdown
files, test files and unrelated experiment files should not block a launch. Which experiments are unrelated no default
can know, since experiments import one another: a contract names them under ``[code] harmless``.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

HARMLESS = (
    "*.md",
    "*.rst",
    "LICENSE*",
    "docs/",
    "tests/",
    "test_*.py",
    "*_test.py",
    "conftest.py",
    "*.log",
    "/logs/",
    "/wandb/",
    "/.github/",
    "/.vscode/",
    "/.idea/",
    ".gitignore",
    ".gitattributes",
    ".editorconfig",
    ".pre-commit-config.yaml",
    "__pycache__/",
    "*.pyc",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".DS_Store",
    "*.swp",
    "*~",
    "hero.toml",
    "hero.db*",
    "/runs/*.toml",
)
"""The default globs. Hero's own configuration, contracts and database are among them: they may lie in a checkout."""


def is_harmless(path: str, globs: Sequence[str]) -> bool:
    """Return whether a path matches one of the globs.

    A glob without a slash matches the name of a file or folder at any depth; one with a slash at its start or in its
    middle matches from the checkout's top. One that ends with a slash matches folders alone. What lies below a folder
    that matches, matches. ``*`` and ``?`` do not cross a slash, ``**`` does. Case counts.

    Args:
        path: relative to the checkout's top level, with ``/``.
        globs: see above; an empty one matches nothing.
    """
    names, folders, anchored = _patterns(tuple(globs))
    *above, name = path.split("/")
    return (
        anchored.match(path) is not None
        or _is_named(names, name)
        or any(_is_named(names, each) or _is_named(folders, each) for each in above)
    )


def unharmless(paths: Iterable[str], globs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that no glob matches, in their order: those that could change what is trained."""
    return tuple(path for path in paths if not is_harmless(path, globs))


def literally(path: str) -> str:
    """Return a glob that matches this one path from the top, and all below it."""
    return "/" + re.sub(r"([*?\[])", r"[\1]", path.strip("/"))


@cache
def _patterns(globs: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what a name at any depth, a folder at any depth, and a path from the top must match: one pattern each."""
    names, folders, anchored = list[str](), list[str](), list[str]()
    for glob in globs:
        body = _translated(glob.strip("/"))
        if not body or not _compiles(body):
            continue
        is_folder = glob.endswith("/")
        if "/" in glob.rstrip("/"):
            anchored.append(f"{body}{'/' if is_folder else '(?:/|\\Z)'}")
        else:
            (folders if is_folder else names).append(f"{body}\\Z")
    return _any_of(names), _any_of(folders), _any_of(anchored)


@lru_cache(maxsize=2**14)  # a folder's name comes with every path below it
def _is_named(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.match(name) is not None


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns) or r"(?!)", re.DOTALL)


def _compiles(body: str) -> bool:
    """Whether it is a pattern at all; "[z-a]" is none, matches nothing and so excuses nothing."""
    try:
        re.compile(body)
    except re.error:
        return False
    return True


def _translated(body: str) -> str:
    """Return the glob as a regular expression."""
    parts: list[str] = []
    place = 0
    while place < len(body):
        for pattern, written in (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]")):
            if body.startswith(pattern, place):
                parts.append(written)
                place += len(pattern)
                break
        else:
            end = body.find("]", place + 2) if body[place] == "[" else -1
            parts.append(_set(body[place + 1 : end]) if end > 0 else re.escape(body[place]))
            place = end + 1 if end > 0 else place + 1
    return "".join(parts)


def _set(inside: str) -> str:
    negated = inside[0] in "!^"
    inside = (inside[1:] if negated else inside).replace("\\", r"\\").replace("[", r"\[").replace("&", r"\&")
    return f"[{'^' if negated else ''}{inside.replace('^', r'\^')}]"
