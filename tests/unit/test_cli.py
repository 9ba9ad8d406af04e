"""How a command's end becomes the program's."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from typer.testing import CliRunner

from bot.cli import app
from bot.commands.ending import end
from bot.errors import ConfigurationError, RefusedError, StoreError


def ends_with(call: Callable[[], Any], *, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as ended:
        end(cast("typer.Context", SimpleNamespace(obj=debug)), call)
    return ended.value.exit_code


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError(("hero.toml:1: a is wrong", "hero.toml:2: b is wrong")), 2),
        (StoreError("hero.db: locked"), 1),
        (RefusedError("iris", "no credentials"), 4),
    ],
)
def test_an_expected_error_is_said_line_by_line_without_a_traceback(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends_with(raising(error)) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [f"hero: {line}" for line in str(error).splitlines()]


def test_an_interruption_ends_the_program_quietly(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends_with(raising(KeyboardInterrupt())) == 130

    assert capsys.readouterr() == ("", "")


def test_a_result_is_the_exit_code_and_none_is_success() -> None:
    assert (ends_with(lambda: None), ends_with(lambda: 3)) == (0, 3)


def test_an_error_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        end(cast("typer.Context", SimpleNamespace(obj=False)), raising(ZeroDivisionError()))


@pytest.mark.parametrize(
    "arguments",
    [["log", "toy", "--markdown", "--json"], ["explain", "toy", "loss.spike", "--check", "job.state"]],
)
def test_options_that_contradict_each_other_are_wrong_usage(arguments: list[str]) -> None:
    ended = CliRunner().invoke(app, arguments)

    assert ended.exit_code == 2
    assert "give one of them" in ended.output
