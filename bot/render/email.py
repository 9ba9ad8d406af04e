"""An update as a mail: a subject that says it all, a plain text, and the same as a little HTML.

Everything from outside is cleaned, and escaped in the HTML; nothing in it loads or links anything. A mail is cut where
evidence is long, and never where it says what to do.
"""

from html import escape

from bot.model.update import Update
from bot.model.value import Value
from bot.render.text import clean
from bot.render.words import SEVERITY_SIGNS, first_line, say_time, standing_facts

SUBJECT_LIMIT = 180
_LINE = 2_000
_MOST_LINES = 60
_FOOT = "Hero sends mail and reads none: an answer to it decides nothing and reaches nobody."


class Mail(Value):
    """What a mail says."""

    subject: str
    text: str
    html: str


def render_email(update: Update, *, timezone: str) -> Mail:
    """Render an update; ``timezone`` is that of the people who read times."""
    head = _one_line(first_line(update), _LINE)
    sign = SEVERITY_SIGNS[update.severity]
    next_ = _one_line(update.next, _LINE)
    asked = ", ".join(_one_line(name, 100) for name in (update.asked, *update.also_asked) if name)
    choice = _choice(update)
    facts = standing_facts(update.standing, timezone) if update.standing else ()
    plan, evidence = _lines(update.plan), _lines(update.evidence)
    when = say_time(update.at, timezone)
    text = [f"{sign} {head}", ""]
    text += [f"Next: {next_}"] if next_ else []
    text += [f"Asked: {asked}"] if asked else []
    text += [choice] if choice else []
    for title, lines in (("Plan", plan), ("Evidence", evidence)):
        text += ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []
    text += ["", *(f"{label}: {_one_line(value, 400)}" for label, value in facts)] if facts else []
    text += ["", when, "", "-- ", _FOOT, ""]
    body = [f"<p><strong>{escape(f'{sign} {head}')}</strong></p>"]
    body += [f"<p><strong>Next:</strong> {escape(next_)}</p>"] if next_ else []
    body += [f"<p><strong>Asked:</strong> {escape(asked)}</p>"] if asked else []
    body += [f"<p>{escape(choice)}</p>"] if choice else []
    for title, lines in (("Plan", plan), ("Evidence", evidence)):
        body += [f"<p>{title}:</p><pre>{escape(chr(10).join(lines))}</pre>"] if lines else []
    cells = (f"<tr><td>{escape(label)}</td><td>{escape(_one_line(value, 400))}</td></tr>" for label, value in facts)
    body += [f"<table>{''.join(cells)}</table>"] if facts else []
    body += [f"<p><small>{escape(when)}<br>{escape(_FOOT)}</small></p>"]
    html = f'<!doctype html><html><head><meta charset="utf-8"></head><body>{"".join(body)}</body></html>'
    return Mail(subject=_one_line(first_line(update), SUBJECT_LIMIT), text="\n".join(text), html=html)


def _choice(update: Update) -> str:
    if update.choice is None:
        return ""
    request = _one_line(update.choice.request, 50)
    if update.choice.is_open:
        return f"To answer: `approve {request}` or `deny {request} because …` in the run's conversation, not here."
    outcome = _one_line(update.choice.outcome, 600)
    return f"{request}: {outcome}" if outcome else f"{request} is closed."


def _lines(entries: tuple[str, ...]) -> list[str]:
    lines = [line for entry in entries for line in clean(entry, _LINE * 4).split("\n")]
    left = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"… {left} more lines are in the run's conversation"] if left > 0 else lines


def _one_line(text: str, limit: int) -> str:
    return clean(" ".join(clean(text, _LINE * 4).split()), limit)
