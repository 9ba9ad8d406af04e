"""What an issue says that Hero opens for a run: the text of the house if it has one, else Hero's own. Pure.

A template is Markdown; ``{run_id}`` and the like stand for what the run's contract says. What comes from the contract
is escaped: it mentions nobody and forges no marker.
"""

import re
from collections.abc import Mapping

from bot.model.contract import Contract
from bot.model.value import RunId, Value
from bot.render.github import BODY_LIMIT, MARKER_START, TITLE_LIMIT, coded, delivery_marker, run_marker
from bot.render.text import clean, github_escape

_NOT_STATED = "not stated"
_VALUE_LIMIT = 500
_TEMPLATE_LIMIT = BODY_LIMIT // 2
"""The run's record needs the rest."""
_PLACE = re.compile(r"\{([a-z_]+)\}")
_MEANINGS = {
    "run_id": "the run's id",
    "dri": "name of the DRI in [people]",
    "deputies": "names of the deputies",
    "owner": "name of the owner",
    "kind": "production or diagnostic",
    "hardware": "what the run is promised to run on",
    "final_step": "the step at which it ends",
    "tracker": "where its figures are tracked",
    "how_to_answer": "how requests are answered on the issue",
}
PLACES = tuple(_MEANINGS)
"""What may stand in braces."""

HOW_TO_ANSWER = (
    "A request is answered by a comment of its DRI with one line that is exactly `approve R7` or "
    "`deny R7 because …`, with the number that stands in the request. `/hero help` lists what else can be asked."
)

_OWN = """\
# Hero run: {run_id}
Hero looks after the training run `{run_id}` and reports here: one comment is its live status and is \
edited in place, and each material event gets a comment of its own.

{how_to_answer}
"""


class IssueTemplate(Value):
    """A title and a body with places in braces."""

    title: str
    body: str


def parse_template(text: str) -> IssueTemplate:
    """Read a template; a first line ``# …`` is the title.

    Raises:
        ValueError: it is too long, empty, or has a place in braces that nothing is known for; says the fix.
    """
    head, _, rest = text.replace("\r\n", "\n").strip().partition("\n")
    title, body = (head[2:].strip(), rest.strip()) if head.startswith("# ") else ("Hero run: {run_id}", text.strip())
    unknown = sorted({name for name in _PLACE.findall(f"{title} {body}") if name not in _MEANINGS})
    problem = ""
    if unknown:
        problem = f"nothing is known for {{{unknown[0]}}}; there are {', '.join(f'{{{name}}}' for name in PLACES)}"
    elif not body:
        problem = "is empty below its title; write what the issue shall say"
    elif len(text) > _TEMPLATE_LIMIT:
        problem = f"is longer than {_TEMPLATE_LIMIT} characters; shorten it, since the run's record needs the rest"
    elif MARKER_START in text:
        problem = f"holds {MARKER_START!r}, by which Hero finds its own text; take it out"
    if problem:
        raise ValueError(problem)
    return IssueTemplate(title=title, body=body)


OWN_TEMPLATE = parse_template(_OWN)


def facts_of(contract: Contract) -> dict[str, str]:
    """Return what a contract says for the places of a template."""
    tracker = contract.tracker
    tracked = "/".join(part for part in (tracker.entity, tracker.project, tracker.id) if part)
    facts = {
        "dri": contract.dri,
        "deputies": ", ".join(contract.deputies),
        "owner": contract.owner or "",
        "kind": contract.effective_kind,
        "hardware": contract.hardware or "",
        "final_step": str(contract.final_step or ""),
        "tracker": tracked,
    }
    return {name: value for name, value in facts.items() if value}


def fill_template(template: IssueTemplate, run_id: RunId, facts: Mapping[str, str]) -> tuple[str, str]:
    """Return title and body of a run's issue; the body ends with the marker by which it is found again."""

    def value(found: re.Match[str], *, is_title: bool) -> str:
        name = found[1]
        if name == "how_to_answer":
            return HOW_TO_ANSWER
        if name == "run_id":  # often in a code span, where an escape would be seen
            return clean(run_id, TITLE_LIMIT) if is_title else re.sub(r"[^A-Za-z0-9._:/-]", "_", run_id)
        text = " ".join(clean(facts.get(name, _NOT_STATED), _VALUE_LIMIT).split())
        return text if is_title else github_escape(text, _VALUE_LIMIT)

    title = _PLACE.sub(lambda found: value(found, is_title=True), template.title)
    body = _PLACE.sub(lambda found: value(found, is_title=False), template.body)
    return clean(title, TITLE_LIMIT), f"{body[:_TEMPLATE_LIMIT].strip()}\n\n{run_marker(run_id)}"


def continued(title: str, body: str, *, former: int, link: str) -> tuple[str, str]:
    """Return title and body of the issue that goes on where a full one ends."""
    said = f"This goes on where [#{former}]({link}) ends: GitHub takes no more than 2,500 comments on an issue."
    return clean(f"{title} (goes on from #{former})", TITLE_LIMIT), f"{said}\n\n{body}"


def successor_marker(run_id: RunId, former: int) -> str:
    """Return what tells the issue that goes on after a certain one from the run's other issues."""
    return f"{MARKER_START}run={coded(run_id)} after={former} -->"


def forward_body(number: int, link: str, *, key: str) -> str:
    """Return the last comment on an issue that is full."""
    return (
        f"**This issue is full: everything goes on in [#{number}]({link}).**\n\nGitHub takes no more than 2,500 "
        "comments on an issue. Please write there from now on; an answer to a request that still stands here counts "
        f"here as well.\n\n{delivery_marker(key)}"
    )


def with_forward(body: str, number: int, link: str) -> str:
    """Return an issue's own text with the link forward on top, for one that takes no comment any more."""
    line = f"**Goes on in [#{number}]({link}).** {MARKER_START}successor={number} -->"
    return body if line in body else f"{line}\n\n{body}"
