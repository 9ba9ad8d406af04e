"""gradients.explosion and router.collapse: figures that leave their own level and stay away."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.snapshot import MetricRow
from bot.model.verdict import NotApplicable, Pass, Severity, UnknownVerdict
from checks.gradients import EXPLOSION
from checks.router import COLLAPSE
from tests.fakes.snapshots import contract, row, snapshot, unknown
from tests.unit.checks.curves import decay, findings, looks, named, scaled
from tests.unit.checks.story import verdict, verdicts

UNIFORM = math.log(64)


def _norms(rows: int = 2_000, *, noise: float = 0.3, seed: int = 0) -> list[MetricRow]:
    return named(decay("power", rows=rows, noise=noise, seed=seed, outliers=0.02), "grad_norm", lambda value: value / 5)


def _entropies(low_from: int | None = None, low: float = 0.0, name: str = "router_entropy") -> list[MetricRow]:
    """Return entropies just below that of 64 experts used alike, lower from some step on."""
    run = named(decay("flat", rows=1_600, noise=0.01), name, lambda value: UNIFORM - 0.05 * value)
    return [
        each.model_copy(update={"values": {name: each.values[name] - low}})
        if low_from is not None and each.step >= low_from
        else each
        for each in run
    ]


@settings(max_examples=15, deadline=None)
@given(noise=st.sampled_from([0.1, 0.3, 0.5]), seed=st.integers(0, 1_000))
def test_healthy_norms_with_outliers_never_alarm(noise: float, seed: int) -> None:
    assert not findings(EXPLOSION, looks(_norms(noise=noise, seed=seed)))


@pytest.mark.parametrize(("factor", "severity"), [(8, Severity.WARNING), (500, Severity.CRITICAL)])
def test_norms_that_stay_far_above_their_level_are_an_explosion(factor: float, severity: Severity) -> None:
    found = findings(EXPLOSION, looks(scaled(_norms(), factor, 1_500, 1_560, "grad_norm")))

    assert found
    assert abs((found[0].since_step or 0) - 1_500) < 5
    assert found[0].severity is severity


def test_a_norm_that_rises_slowly_over_the_run_is_none() -> None:
    run = [row(each.step, grad_norm=each.values["grad_norm"] * 20 ** (each.step / 2_000)) for each in _norms(noise=0.1)]

    assert not findings(EXPLOSION, looks(run))


def test_one_huge_norm_is_none() -> None:
    run = scaled(_norms(), 1_000, 1_500, 1_500, "grad_norm")

    assert not findings(EXPLOSION, looks(run))
    assert verdicts(EXPLOSION, looks(run))[-1] == Pass()


def test_the_level_entropy_of_a_balanced_router_passes() -> None:
    assert verdicts(COLLAPSE, looks(_entropies()))[-1] == Pass()


@pytest.mark.parametrize("name", ["router_entropy", "train_router_routing_entropy_mean"])
def test_experts_that_are_used_less_and_less_alike_are_a_collapse(name: str) -> None:
    found = findings(COLLAPSE, looks(_entropies(1_300, 0.3, name)))

    assert found[0].since_step == 1_300
    assert found[0].severity is Severity.WARNING
    assert "effective experts" in found[0].summary


def test_half_of_the_experts_lost_wakes_the_dri() -> None:
    assert findings(COLLAPSE, looks(_entropies(1_300, 0.8)))[0].severity is Severity.CRITICAL


def test_with_the_number_of_experts_known_a_run_that_was_never_balanced_is_told() -> None:
    promised = contract(thresholds={"router.collapse": {"experts": 64}})

    found = findings(COLLAPSE, looks(_entropies(0, 1.0)), promised=promised)

    assert found[0].severity is Severity.CRITICAL
    assert "below 0.5 of 64 since step 1" in found[0].summary
    assert not findings(COLLAPSE, looks(_entropies()), promised=promised)


@pytest.mark.parametrize(("left", "is_told"), [(0.1, True), (0.6, False)])
def test_a_collapse_that_takes_a_whole_life_is_told_and_a_router_that_specialises_is_not(
    left: float, is_told: bool
) -> None:
    last = 40_000
    fall = -math.log(left) / last
    run = [
        row(each.step, router_entropy=UNIFORM - fall * each.step) for each in decay("flat", rows=last // 10, every=10)
    ]

    found = findings(COLLAPSE, looks(run))

    assert bool(found) is is_told
    assert all(each.severity is Severity.WARNING for each in found)


@pytest.mark.parametrize(
    ("name", "level", "factor", "is_told"),
    [
        ("moe_drop_fraction", 0.01, 10, True),
        ("moe_drop_fraction", 0.001, 5, False),
        ("token_drops", 0.03, 4, True),
        ("router_z_loss", 0.5, 5, True),
        ("router_z_loss", 0.5, 1.5, False),
        ("router_bias", 20, 30, True),
    ],
)
def test_the_router_s_other_figures_are_held_against_their_level(
    name: str, level: float, factor: float, is_told: bool
) -> None:
    run = named(decay("flat", rows=1_600, noise=0.05), name, lambda value: level * value / 0.7)

    assert bool(findings(COLLAPSE, looks(scaled(run, factor, 1_300, 1_340, name)))) is is_told


def test_a_dense_model_has_no_router() -> None:
    assert isinstance(verdict(COLLAPSE, *looks(decay())), NotApplicable)
    assert isinstance(verdict(EXPLOSION, *looks(decay())), NotApplicable)


@pytest.mark.parametrize("check", [COLLAPSE, EXPLOSION])
def test_what_cannot_be_read_is_no_pass(check: object) -> None:
    judged = COLLAPSE if check is COLLAPSE else EXPLOSION
    run = _entropies() if check is COLLAPSE else _norms()

    assert isinstance(verdict(judged, *looks(run), snapshot(metrics=unknown())), UnknownVerdict)
    assert isinstance(verdict(judged, *looks(run), snapshot(jobs=unknown())), UnknownVerdict)


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.floats(), max_size=60))
def test_nothing_that_is_logged_makes_them_raise(values: list[float]) -> None:
    names = ("grad_norm", "router_entropy", "token_drops", "router_z_loss", "router_bias")
    rows = [MetricRow(step=step, values=dict.fromkeys(names, value)) for step, value in enumerate(values)]

    verdicts(EXPLOSION, looks(rows, [7]))
    verdicts(COLLAPSE, looks(rows, [7]))
