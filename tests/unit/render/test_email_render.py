"""Every update as a mail: goldens as prose."""

from collections.abc import Callable

import pytest

from bot.model.update import UpdateKind
from bot.render.email import SUBJECT_LIMIT, render_email
from tests.unit.render.test_slack_render import example


@pytest.mark.parametrize("kind", UpdateKind)
def test_every_kind_of_update_reads_as_its_golden_mail(kind: UpdateKind, golden: Callable[[str, str], None]) -> None:
    mail = render_email(example(kind), timezone="UTC")

    golden(f"email/{kind}.txt", f"Subject: {mail.subject}\n\n{mail.text}\n{mail.html}\n")


def test_long_evidence_gives_way_and_what_to_do_stays() -> None:
    long = example(UpdateKind.FAILED).model_copy(update={"evidence": ("line\n" * 5_000,), "headline": "x " * 5_000})

    mail = render_email(long, timezone="UTC")

    assert len(mail.subject) <= SUBJECT_LIMIT
    assert "more lines are in the run's conversation" in mail.text
    assert mail.text.index("Next: Hero checks again") < mail.text.index("Evidence:")
    assert len(mail.html) < 20_000
