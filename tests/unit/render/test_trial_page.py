"""The page of a trial: whole markup, nothing from outside, and nobody's text becomes part of it."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.model.conduct import Ending, Stage
from bot.model.gate import parse_gate
from bot.model.series import History
from bot.model.trial import Judged, Outcome
from bot.model.value import PersonName, RunId
from bot.redaction import Redactor
from bot.render.trial_page import PageFacts, TrialPages, safe_address, strip_of
from bot.replay.coverage import logged_in
from tests.fakes.markup import Page
from tests.fakes.snapshots import AT, RUN
from tests.fakes.trial_reports import CHILD, WINDOW, a_comparison, a_history, a_trial, figure

HISTORIES = (a_history(900, 1250), a_history(1000, 1150, seed=2))
SCREAM = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}<!-- & \x00\u202e\x1b[31m"


def facts(**fields: Any) -> PageFacts:
    given: dict[str, Any] = {
        "run_id": RUN,
        "trial": a_trial(),
        "window": WINDOW,
        "found": a_comparison(),
        "logged": logged_in(*HISTORIES, WINDOW, ("loss", "tokens_per_second")),
        "notes": (),
        "unknown": (),
        "links": (("issue", "https://github.com/acme/runs/issues/4"),),
        "made_at": AT,
        "until": AT + timedelta(minutes=5),
        "timezone": "Europe/Berlin",
        "picture": "",
    }
    return PageFacts(**given | fields)


def page_of(**fields: Any) -> Page:
    page = Page(TrialPages().trial(facts(**fields)))
    assert page.faults == []
    return page


def test_the_page_says_what_an_engineer_decides_on() -> None:
    text = page_of(unknown=("finelog: timeout (no answer in 20 s)",)).text

    assert "FAIL: of 5 gates 2 failed, 2 could not be told, 1 passed" in text
    assert "✗ FAIL +0.00516 between +0.00478 and +0.00554 0.00316 beyond the limit 200 of 200" in text
    assert "? cannot tell +2.6% at least +0.756%" in text
    assert "crashes 0, retries 1, watchdogs 0, alerts not counted" in text
    assert "finelog: timeout (no answer in 20 s)" in text
    assert "Made 2026-11-29 05:00 CET. Believe it until 2026-11-29 05:05 CET" in text
    assert "until 2026-11-29 17:00 CET" in text
    assert "no evaluation falls into the window" in text
    assert "router_entropy +0.00079 +0.02 % -0.0301 1030 20" in text
    assert "only 1, the newest, is compared" in text
    assert "child trains 2026-11-29 06:10 CET go: the child is accepted closed" in text
    assert "hero-next forked off hero-12d8b6f0 at _step 1003 (global_step 999)" in text
    assert text.index("loss mean <= +0.002") < text.index("tokens_per_second mean >= -1%"), "what fails comes first"


def test_before_the_childs_first_step_the_page_shows_what_was_agreed_and_the_control() -> None:
    logged = logged_in(HISTORIES[0], History({}), WINDOW, ("loss",))

    page = page_of(found=None, logged=logged, trial=a_trial(Stage.LAUNCHED))

    assert "no step of the child yet" in page.text
    assert "loss mean <= +0.002 tokens_per_second mean >= -1%" in page.text
    assert "loss control 200 of 200" in page.text
    assert "loss child 0 of 200" in page.text
    assert "pass" not in {attributes.get("class") for _, attributes in page.elements}


def test_a_page_is_made_when_everything_is_missing() -> None:
    bare = a_trial(
        Stage.PLANNED,
        steps=(),
        review=None,
        plan={"fork": None, "gates": (), "quiet": False, "coverage_gaps": (), "rollback_by": None},
    )

    page = page_of(trial=bare, found=None, logged=(), links=(), picture="drawing it took longer than 45 s")

    assert "There is no picture: drawing it took longer than 45 s" in page.text
    assert "nobody independent has looked at it yet" in page.text
    assert "Neither run has logged a figure in the window." in page.text
    assert "forked" not in page.text
    assert not page.all("img")


def test_a_trial_that_is_over_is_final_and_names_no_time_until_when_to_believe_it() -> None:
    back = (Stage.NO_GO, Stage.ROLLED_BACK, Stage.CLOSED)
    trial = a_trial()
    for stage in back:
        trial = trial.reached(stage, AT + timedelta(hours=2))

    text = page_of(trial=trial.model_copy(update={"ending": Ending.ROLLED_BACK, "why": "the loss gate failed"})).text

    assert "This is final. rolled back: the old run goes on" in text
    assert "the loss gate failed" in text
    assert "Believe it until" not in text
    assert "rolled back: the old run trains again 2026-11-29 07:00 CET closed 2026-11-29 07:00 CET" in text


def test_the_page_needs_nothing_from_outside_and_no_script() -> None:
    page = page_of()

    assert {tag for tag, _ in page.elements} & {"script", "link", "iframe", "object", "form", "base"} == set()
    assert [each["src"] for each in page.all("img")] == ["overlay.png"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in page.elements if "url(" in attributes.get("style", "")]


def test_who_cannot_see_the_page_can_read_it() -> None:
    page = page_of()

    assert page.all("html")[0]["lang"] == "en"
    assert all(each.get("alt") for each in page.all("img"))
    assert all(each.get("scope") in {"row", "col"} for each in page.all("th"))
    assert all(each.get("aria-labelledby") for each in page.all("table"))
    assert all(each.get("aria-hidden") == "true" for each in page.all("svg")), "its numbers stand beside it"
    assert {each["aria-labelledby"] for each in page.all("table")} <= {e["id"] for _, e in page.elements if "id" in e}


def test_what_people_and_programs_wrote_is_shown_and_does_nothing() -> None:
    plain = page_of()
    gates = tuple(each.model_copy(update={"reasons": (SCREAM,)}) for each in a_comparison().gates)
    trial = a_trial(
        why=SCREAM,
        agreed_by=PersonName(SCREAM),
        tracker_report_url=f"javascript:{SCREAM}",
        plan={"coverage_gaps": (SCREAM,), "child_run_id": RunId(SCREAM), "child_root": SCREAM},
    )

    page = page_of(
        run_id=RunId(SCREAM),
        trial=trial,
        found=a_comparison(gates=gates, notes=(SCREAM,)),
        unknown=(SCREAM,),
        links=((SCREAM, 'https://x.example/?a=<b>&"c'), (SCREAM, "data:text/html,x"), (SCREAM, f"https://x/{SCREAM}")),
    )

    assert {tag for tag, _ in page.elements} == {tag for tag, _ in plain.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\u202e" not in page.text
    assert "\x1b" not in page.text
    hrefs = [each["href"] for each in page.all("a")]
    assert hrefs == ["overlay.png", 'https://x.example/?a=<b>&"c', "comparison.json"]


def test_a_secret_is_no_part_of_the_page() -> None:
    pages = TrialPages(Redactor(("tr0ub4dor&3",)).text)

    markup = pages.trial(facts(unknown=("wandb: refused tr0ub4dor&3",), trial=a_trial(why="key tr0ub4dor&3 refused")))

    assert "tr0ub4dor" not in markup
    assert "wandb: refused [redacted]" in Page(markup).text


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", " https://a b", "//evil.example", "https://", "https://[", "file:///etc/passwd", ""],
)
def test_an_address_that_does_more_than_lead_somewhere_is_no_link(address: str) -> None:
    assert safe_address(address) == ""


NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60)
@given(
    line=st.sampled_from(
        ["x mean <= +1", "x mean >= -2%", "x mean within 3", "x p95 within 2%", "x max <= 0", "x mean <= -1"]
    ),
    low=NUMBER,
    high=NUMBER,
    delta=NUMBER,
)
@example(line="x mean <= +1", low=None, high=None, delta=-1.6645306804280703e308)
@example(line="x mean <= +1", low=-1.7e308, high=1.7e308, delta=5e-324)
def test_a_gates_line_stays_on_the_page_whatever_was_measured(
    line: str, low: float | None, high: float | None, delta: float | None
) -> None:
    judged = Judged(
        gate=parse_gate(line), outcome=Outcome.CANNOT_TELL, reasons=("so",), delta=delta, low=low, high=high
    )

    strip = strip_of(judged)

    if strip is None:
        assert delta is low is high is None
        return
    places = [strip.zero, *strip.allowed, *strip.limits, *(strip.interval or ())]
    places += [] if strip.delta is None else [strip.delta]
    assert all(0 <= place <= 100 for place in places), places
    assert Page(TrialPages().trial(facts(found=a_comparison(gates=(judged,))))).faults == []


def test_the_list_of_trials_links_to_each() -> None:
    page = Page(TrialPages().index(((RUN, CHILD), ("a", "b"))))

    assert page.faults == []
    assert [each["href"] for each in page.all("a")] == [f"{RUN}/{CHILD}/", "a/b/"]
    assert "No report of a trial has been made yet." in Page(TrialPages().index(())).text


def test_a_run_that_logs_nothing_finite_is_shown_as_that() -> None:
    nan = History({"loss": figure([1000, 1001, 1003], [float("nan"), float("inf"), float("-inf")])})

    page = page_of(logged=logged_in(HISTORIES[0], nan, WINDOW, ("loss",)))

    assert "loss child 3 of 200 - - - - missing: 1002 196 to come 3 NaN or infinite" in page.text
