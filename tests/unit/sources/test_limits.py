"""The watchdog limits of a trial's child: from the nearest configuration that is there, never a guess past a gap."""

from datetime import timedelta
from typing import Any

import pytest

from bot.model.launched import LaunchedConfig
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.rehearsal import Limits
from bot.model.trial import TrialContract
from bot.sources.config.limits import limits_of
from bot.sources.config.words import known_keys
from tests.fakes.launched import ORIGIN, config, tree
from tests.fakes.snapshots import AT, contract, unknown

HOUR = timedelta(hours=1)
ABSENT = unknown(Gap.NOT_CONFIGURED)
NOT_YET = unknown(Gap.NOT_YET)
STATED = TrialContract(startup_limit=3 * HOUR)


def read(origin: str = ORIGIN, **changes: Any) -> Known[LaunchedConfig]:
    return Known(value=config(tree(**changes), origin=origin), at=AT)


def limits(
    child: Reading[LaunchedConfig] = NOT_YET,
    coming: Any = None,
    old: Reading[LaunchedConfig] = ABSENT,
    trial: TrialContract = STATED,
) -> Reading[Limits]:
    return limits_of(trial, child=child, coming=coming or Known(value=None, at=AT), old=old)


def known(*readings: Any, **fields: Any) -> Limits:
    found = limits(*readings, **fields)
    assert isinstance(found, Known), found
    return found.value


WITH_BOTH = {
    "trainer__progress_watchdog__startup_timeout": "2:00:00",
    "trainer__progress_watchdog__step_timeout": 1800,
}


def test_the_nearest_configuration_counts_and_none_behind_it() -> None:
    child, coming, old = (read(origin, **WITH_BOTH) for origin in ("child.yaml", "coming.yaml", "old.yaml"))

    own = known(child, coming, old)
    before = known(NOT_YET, coming, old)
    borrowed = known(NOT_YET, None, old)

    assert (own.startup, own.step) == (2 * HOUR, HOUR / 2)
    assert own.startup_source == "trainer.progress_watchdog.startup_timeout of child.yaml"
    assert own.step_source == "trainer.progress_watchdog.step_timeout of child.yaml"
    assert before.startup_source.endswith("of coming.yaml")
    assert "old.yaml, the old run's configuration" in borrowed.startup_source
    assert "the old run's configuration" in borrowed.step_source


def test_a_nearer_one_that_states_none_is_not_filled_up_from_one_behind_it() -> None:
    found = known(read("child.yaml"), read("coming.yaml", **WITH_BOTH), read("old.yaml", **WITH_BOTH))

    assert found.startup == 3 * HOUR
    assert found.startup_source == "[trial] startup_limit of the contract: child.yaml states no start-up watchdog"
    assert found.step == HOUR / 2


def test_without_any_limit_it_says_so_and_names_none() -> None:
    nothing = known(trial=TrialContract())
    unset = known(read("child.yaml", trainer__progress_watchdog__step_timeout=None), trial=TrialContract())

    assert (nothing.startup, nothing.step) == (None, None)
    assert "no [trial] startup_limit" in nothing.startup_source
    assert (unset.startup, unset.step) == (None, None)
    assert unset.step_source == "child.yaml states no step watchdog"


@pytest.mark.parametrize("reason", [each for each in Gap if each not in {Gap.NOT_CONFIGURED, Gap.NOT_YET}])
@pytest.mark.parametrize("place", range(3))
def test_one_that_is_there_and_cannot_be_read_makes_the_limits_unknown(reason: Gap, place: int) -> None:
    readings: list[Any] = [NOT_YET, None, ABSENT]
    readings[place] = unknown(reason)

    found = limits(*readings)

    assert isinstance(found, Unknown)
    assert found.reason is reason


@pytest.mark.parametrize("written", ["soon", 0, -1, True, [60], {"minutes": 5}])
def test_a_limit_that_is_no_time_is_not_understood(written: Any) -> None:
    found = limits(read(trainer__progress_watchdog__startup_timeout=written))

    if isinstance(written, dict):  # then that key has no value of its own
        assert isinstance(found, Known)
        assert found.value.startup == 3 * HOUR
    else:
        assert isinstance(found, Unknown)
        assert found.reason is Gap.UNRECOGNISED
        assert "startup_timeout" in found.detail


def test_the_contracts_own_key_for_the_word_is_taken_and_the_usual_one_is_levanters() -> None:
    promised = contract(config={"keys": {"startup_watchdog": "limits.boot"}})
    own = Known(value=config({"limits": {"boot": "90m"}}, origin="run.json", promised=promised), at=AT)

    found = known(own)

    assert (found.startup, found.startup_source) == (1.5 * HOUR, "limits.boot of run.json")
    assert known_keys("startup_watchdog")[0] == "trainer.progress_watchdog.startup_timeout"
