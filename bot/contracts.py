"""The contracts on disk: ``runs/RUN_ID.toml``, read anew whenever one is asked for, so that an edit counts at once."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.model.contract import Contract
from bot.model.value import PersonName, RunId, Value

type ContractTest = Callable[[Contract], tuple[str, ...]]
"""A further test of a contract that parsed; returns its problems."""


class BadContract(Value):
    """A contract that cannot be used. It blocks its own run and no other."""

    run_id: RunId
    problems: tuple[str, ...]
    """Each names the file, the key and the fix."""


class Contracts:
    """All contracts of one directory."""

    def __init__(
        self,
        directory: Path,
        people: frozenset[PersonName],
        tests: tuple[ContractTest, ...] = (),
    ) -> None:
        self._directory = directory
        self._people = people
        self._tests = tests

    @property
    def directory(self) -> Path:
        return self._directory

    def run_ids(self) -> tuple[RunId, ...]:
        """Every run that has a file, readable or not, by name."""
        files = (path for path in sorted(self._directory.glob("*.toml")) if not path.name.startswith("."))
        return tuple(RunId(path.stem) for path in files)  # editors keep their locks and copies in hidden files

    def load(self, run_id: RunId) -> Contract | BadContract:
        """Read one contract."""
        return self.read(self._directory / f"{run_id}.toml")

    def read(self, path: Path) -> Contract | BadContract:
        """Read the contract in a file, wherever it lies."""
        run_id = RunId(path.stem)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return BadContract(run_id=run_id, problems=(f"{path}: no such file; `hero init` writes an example",))
        except (OSError, UnicodeDecodeError) as error:
            return BadContract(run_id=run_id, problems=(f"{path}: cannot be read ({error})",))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            return BadContract(run_id=run_id, problems=(f"{path}: is no TOML: {error}",))
        try:
            given = _with_defaults(table, path)
        except (OSError, RuntimeError, ValueError) as error:
            return BadContract(run_id=run_id, problems=(f"{path}: checkout: is no usable path ({error})",))
        try:
            contract = Contract.model_validate(given)
        except ValidationError as error:
            problems = tuple(f"{path}: {_say(each)}" for each in error.errors(include_input=False, include_url=False))
            return BadContract(run_id=run_id, problems=problems)
        problems = tuple(f"{path}: {problem}" for problem in self._look_through(contract, path))
        return BadContract(run_id=run_id, problems=problems) if problems else contract

    def _look_through(self, contract: Contract, path: Path) -> tuple[str, ...]:
        problems: list[str] = []
        if contract.run_id != path.stem:
            problems.append(f"run_id {contract.run_id!r} must be the file's name without .toml, {path.stem!r}")
        roles = (("dri", contract.dri), ("owner", contract.owner), *(("deputies", d) for d in contract.deputies))
        for role, name in roles:
            if name is not None and name not in self._people:
                known = ", ".join(sorted(self._people)) or "nobody yet"
                problems.append(f"{role} {name!r} is nobody in [people] of hero.toml (there: {known})")
        for test in self._tests:
            problems.extend(test(contract))
        return tuple(problems)


def _with_defaults(table: dict[str, Any], path: Path) -> dict[str, Any]:
    """Take the run's name from the file, and make the checkout absolute against the file's own directory."""
    checkout = table.get("checkout", ".")
    if isinstance(checkout, str):
        checkout = str((path.parent.resolve() / Path(checkout).expanduser()).resolve())
    return {"run_id": path.stem, **table, "checkout": checkout}


def _say(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"]) or "contract"
    match error["type"]:
        case "missing":
            return f"{key} is missing"
        case "extra_forbidden":
            return f"{key} is no field of a contract; see docs/contract.md for those there are"
        case "string_pattern_mismatch" if key == "run_id":
            return "run_id must be the file's name without .toml: letters, digits, '.', '_' and '-'"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            return f"{key}: {message}"
