"""What commands print can be read by every reader."""

import json
import math
from datetime import timedelta

import pytest

from bot.commands.checks import check_row
from bot.commands.exits import Exit, exit_of
from bot.commands.printing import jsonable, say_json, say_table
from bot.errors import ConfigurationError, DeadlineError, StoreFullError
from bot.model.durations import parse_duration
from checks import CHECKS


def refuse_constant(name: str) -> None:
    pytest.fail(f"{name} is no JSON")


def test_a_number_that_json_does_not_have_is_a_string(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"loss": math.nan, "inside": [math.inf, {"deep": -math.inf}], "step": 3, "whole": True})

    printed = json.loads(capsys.readouterr().out, parse_constant=refuse_constant)
    assert printed == {"loss": "NaN", "inside": ["Infinity", {"deep": "-Infinity"}], "step": 3, "whole": True}


def test_a_table_outside_of_a_terminal_is_aligned_text_on_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("RUN", "WHAT"), [("a", "broken\nover \x1b[31mlines"), ("longer", "")])

    assert capsys.readouterr().out.splitlines() == ["RUN     WHAT", "a       broken over lines", "longer"]


def test_every_check_is_listed_with_thresholds_that_a_contract_could_hold() -> None:
    rows = [check_row(check) for check in CHECKS]

    assert json.loads(json.dumps(jsonable(rows))) == rows
    for check, row in zip(CHECKS, rows, strict=True):
        assert set(row) >= {"id", "title", "severity", "needs", "thresholds", "docs"}
        thresholds = row["thresholds"]
        assert isinstance(thresholds, dict)
        for name, shown in thresholds.items():
            value = getattr(check.thresholds, name)
            again = parse_duration(shown["default"]) if isinstance(value, timedelta) else shown["default"]
            assert again == (list(value) if isinstance(value, tuple) else value)
            assert shown["meaning"]


def test_an_error_ends_the_program_with_the_code_of_who_has_to_mend_it() -> None:
    assert exit_of(ConfigurationError(("a key is wrong",))) is Exit.USAGE
    assert exit_of(StoreFullError("no space")) is Exit.FAILED
    assert exit_of(DeadlineError("iris", "no answer")) is Exit.UNKNOWN
    assert [code.value for code in Exit][:5] == [0, 1, 2, 3, 4]
