"""The contracts on disk: ``runs/RUN_ID.toml``, looked at whenever one is asked for, so that an edit counts at once.

They are read on the event loop. So nothing but regular files of a sane size is opened, and a file that has not changed
is not read again; the directory belongs on a local disk (docs/running.md).
"""

import os
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.model.contract import Contract
from bot.model.value import PersonName, RunId, Value
from bot.model.wording import Wrong, nearest, not_bare, tables_of, wrongs
from bot.regular_files import open_regular, regular_status
from bot.toml_lines import TomlFile

type ContractTest = Callable[[Contract], tuple[Wrong, ...]]
"""A further test of a contract that parsed; returns its problems."""

LARGEST_BYTES = 256 * 1024
"""Contracts have a few thousand bytes; reading something huge would hold up everything else."""
_RACY_NS = 2_000_000_000
"""Two edits within one tick of the file system's clock carry the same times, so a file this fresh is read again."""
_PAGE = "docs/contract.md"
_STAND_IN: dict[str, Any] = {
    "dri": "nobody",
    "command": ["nothing"],
    "output_root": "nowhere",
    "orchestrator": {"kind": "local", "directory": "nowhere"},
}
"""What is put in place of what is wrong, so that the rest can be looked through at once."""


class BadContract(Value):
    """A contract that cannot be used. It blocks its own run and no other."""

    run_id: RunId
    problems: tuple[str, ...]
    """Each names the file, the line where it is known, the key and the fix."""


class Contracts:
    """All contracts of one directory."""

    def __init__(
        self,
        directory: Path,
        people: frozenset[PersonName] | None,
        tests: tuple[ContractTest, ...] = (),
    ) -> None:
        """Take what contracts are held against.

        Args:
            directory: of the contracts.
            people: who may be named in them; None when somebody else says so, as the launch checklist does.
            tests: further ones.
        """
        self._directory = directory
        self._people = people
        self._tests = tests
        self._texts: dict[Path, tuple[_Stamp, str]] = {}

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
        """Read the contract in a file, wherever it lies.

        A relative ``checkout`` is taken from the directory that holds the contracts' directory, where ``hero.toml``
        lies as ``hero init`` writes it; for a file elsewhere, from the file's own directory.
        """
        run_id = _name_of(path)
        try:
            file = TomlFile(path, self._text(path))
        except FileNotFoundError:
            return BadContract(run_id=run_id, problems=(f"{path}: no such file; `hero init` writes an example",))
        except (OSError, ValueError) as error:
            return BadContract(run_id=run_id, problems=(f"{path}: cannot be read ({error})",))
        try:
            table = tomllib.loads(file.text)
        except tomllib.TOMLDecodeError as error:
            return BadContract(run_id=run_id, problems=(file.broken(error),))
        except RecursionError:
            return BadContract(run_id=run_id, problems=(f"{path}: is no TOML: it is nested too deeply",))
        found = self._judge(table, path)
        if isinstance(found, Contract):
            return found
        problems = tuple(f"{file.where(each.location)}: {each.named}: {each.message}" for each in found)
        return BadContract(run_id=run_id, problems=problems)

    def _text(self, path: Path) -> str:
        """Return what is in the file; from memory while it has not changed.

        Raises:
            OSError: it cannot be read, or is no regular file.
            ValueError: it is no text, or has more than ``LARGEST_BYTES``.
        """
        stamp = _stamp(regular_status(path))
        known = self._texts.pop(path, None)
        if known is not None and known[0] == stamp:
            self._texts[path] = known
            return known[1]
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            raw = file.read(LARGEST_BYTES + 1) if status.st_size <= LARGEST_BYTES else b""
        if max(len(raw), status.st_size) > LARGEST_BYTES:
            msg = f"it is too large: a contract has at most {LARGEST_BYTES} bytes; cut it down"
            raise ValueError(msg)
        text = raw.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _RACY_NS:
            self._texts[path] = (_stamp(status), text)
        return text

    def _judge(self, table: dict[str, Any], path: Path) -> Contract | tuple[Wrong, ...]:
        """Return the contract, or all that is wrong with it at once."""
        if nuls := tuple(_nuls(table)):
            return nuls
        try:
            given = {"run_id": _name_of(path), **table, "checkout": self._checkout(table.get("checkout", "."), path)}
        except (OSError, RuntimeError, ValueError) as error:
            wrong = Wrong(("checkout",), "checkout", f"is no usable path ({error}); give a directory of this machine")
            return (wrong,)
        try:
            contract = Contract.model_validate(given)
        except ValidationError as error:
            refused = tuple(map(_about_run_id, wrongs(Contract, error, what="field of a contract", page=_PAGE)))
            said = {each.location for each in refused}
            quoted = tuple(each for each in not_bare((Contract,), table) if each.location not in said)
            return (*refused, *quoted, *self._look_through_the_rest(given, refused, path))
        return (*not_bare((Contract,), table), *self._look_through(contract, path)) or contract

    def _checkout(self, stated: object, path: Path) -> object:
        if not isinstance(stated, str):
            return stated  # refused by its own field
        above = path.parent.absolute()
        base = above.parent if above == self._directory.absolute() else above
        return str((base / Path(stated).expanduser()).resolve())

    def _look_through_the_rest(
        self, given: dict[str, Any], refused: tuple[Wrong, ...], path: Path
    ) -> tuple[Wrong, ...]:
        """Look through what is left of a contract without its wrong keys."""
        wrong = {each.location[0] for each in refused if each.location}
        left = {key: value for key, value in given.items() if key not in wrong}
        try:
            contract = Contract.model_validate({**_STAND_IN, "run_id": "stand-in", **left})
        except ValidationError:
            return ()
        return tuple(each for each in self._look_through(contract, path) if each.location[0] in left)

    def _look_through(self, contract: Contract, path: Path) -> tuple[Wrong, ...]:
        problems: list[Wrong] = []
        if contract.run_id != _name_of(path):
            message = (
                f"{contract.run_id!r} must be the file's name without .toml, {_name_of(path)!r}; leave the key out"
            )
            problems.append(Wrong(("run_id",), "run_id", message))
        roles = (("dri", contract.dri), ("owner", contract.owner), *(("deputies", d) for d in contract.deputies))
        for role, name in roles:
            if self._people is not None and name is not None and name not in self._people:
                known = ", ".join(sorted(self._people)) or "nobody yet"
                message = f"{name!r} is nobody in [people] of hero.toml (there: {known}); add a table [people.{name}]"
                problems.append(Wrong((role,), role, message))
        for key in contract.basis:
            if key not in _FIELDS:
                guess = nearest(key, _FIELDS)
                message = f"there is no field of this name; {guess} {_PAGE} lists those there are".replace("  ", " ")
                problems.append(Wrong(("basis", key), key, message))
        for test in self._tests:
            problems.extend(test(contract))
        return tuple(problems)


def _name_of(path: Path) -> RunId:
    """Return the run's name by its file's; a sample's is that which it will have."""
    return RunId(path.stem if path.suffix == ".toml" else path.stem.removesuffix(".toml"))


type _Stamp = tuple[int, ...]


def _stamp(status: os.stat_result) -> _Stamp:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _nuls(value: object, location: tuple[str, ...] = (), name: str = "") -> Iterator[Wrong]:
    """Yield every text with a NUL character: no path, argument or name can hold one, and the system chokes on it."""
    match value:
        case str() if "\0" in value:
            yield Wrong(location, name, "holds a NUL character (\\u0000); take it out")
        case dict():
            for key, item in value.items():
                shown = key.replace("\0", "\\u0000")
                if shown != key:
                    yield Wrong((*location, shown), shown, "the key holds a NUL character (\\u0000); take it out")
                yield from _nuls(item, (*location, shown), shown)
        case list():
            for place, item in enumerate(value):
                yield from _nuls(item, location, f"{name}[{place}]")


def _fields() -> frozenset[str]:
    """Return every field of a contract, those in tables as ``table.key``."""
    inside = (
        f"{name}.{key}"
        for name, field in Contract.model_fields.items()
        for table in tables_of(field.annotation)
        for key in table.model_fields
    )
    return frozenset((*Contract.model_fields, *inside))


_FIELDS = _fields()


def _about_run_id(wrong: Wrong) -> Wrong:
    if wrong.location != ("run_id",):
        return wrong
    return wrong._replace(message="must be the file's name without .toml; of letters, digits, '.', '_' and '-'")
