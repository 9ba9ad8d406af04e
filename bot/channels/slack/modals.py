"""A form that asks which run a command is about, for ``/hero plan`` and ``/hero watch`` without a name.

What it sends in is the command as it would have been typed; who may do what is judged where commands are. The form
carries the place it was asked for in, and nothing that anybody relies on. Pure.

Limits: Slack's references of views and of the select menu: 24 characters of a title, 100 options of 75 characters and
values of 150, 3,000 of ``private_metadata``, 255 of ``callback_id``.
"""

import re
import shlex
from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from bot.channels.slack.api import Json
from bot.channels.slack.mapping import Act
from bot.model.event import Commanded, Place
from bot.model.person import Actor, Platform

VERBS = ("plan", "watch")
"""The commands that are asked about in a form."""

_CALLBACK = "hero_choose_"
_INPUT = "run"
_OPTIONS = 100
_TEXT_CHARS = 75
_VALUE_CHARS = 150
_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}", re.ASCII)
_HINTS = {
    "plan": "Hero says in the run's thread what a launch would do, and what speaks against it. Nothing is changed.",
    "watch": "Hero says whether the run is watched, and how to have it watched.",
}


def verb_to_ask_about(text: str) -> str | None:
    """Return the command that names no run although it needs one; None for every other text."""
    word = text.strip().lower()
    return word if word in VERBS else None


def form_for(verb: str, runs: Sequence[str], channel: str) -> Json | None:
    """Return the view that asks for a run; None where there is nothing to choose, or more than a form holds."""
    if not 1 < len(runs) <= _OPTIONS or any(len(run) > _VALUE_CHARS for run in runs):
        return None
    options = [{"text": _plain(_shortened(run)), "value": run} for run in runs]
    return {
        "type": "modal",
        "callback_id": f"{_CALLBACK}{verb}",
        "private_metadata": channel if _CHANNEL.fullmatch(channel) else "",
        "title": _plain(f"Hero: {verb}"),
        "submit": _plain("Ask Hero"),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": _INPUT,
                "label": _plain("Which run?"),
                "hint": _plain(_HINTS[verb]),
                "element": {
                    "type": "static_select",
                    "action_id": _INPUT,
                    "placeholder": _plain("Choose a run"),
                    "options": options,
                },
            }
        ],
    }


def _shortened(run: str) -> str:
    return run if len(run) <= _TEXT_CHARS else f"{run[: _TEXT_CHARS - 1]}…"


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


class _Part(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class _User(_Part):
    id: str
    name: str = ""


class _Option(_Part):
    value: str = Field(min_length=1, max_length=_VALUE_CHARS)


class _Chosen(_Part):
    selected_option: _Option


class _State(_Part):
    values: dict[str, dict[str, _Chosen]]


class _View(_Part):
    id: str = Field(min_length=1, max_length=100)
    callback_id: str
    private_metadata: str = Field(default="", max_length=3_000)
    state: _State


class Submission(_Part):
    """A ``view_submission`` payload; who sent it is ``user``."""

    user: _User
    view: _View


def map_submission(sent: Submission, home: str, at: datetime) -> Act | None:
    """Return the command that a form stands for; one view is one act, however often it is sent.

    Args:
        sent: the payload.
        home: where the answer goes when the form does not say.
        at: now; a form carries no time of its own.
    """
    verb = sent.view.callback_id.removeprefix(_CALLBACK)
    chosen = sent.view.state.values.get(_INPUT, {}).get(_INPUT)
    if verb not in VERBS or chosen is None:
        return None
    where = sent.view.private_metadata
    actor = Actor(platform=Platform.SLACK, user_id=sent.user.id, display_name=sent.user.name[:200])
    place = Place(conversation=where if _CHANNEL.fullmatch(where) else home)
    text = f"{verb} {shlex.quote(chosen.selected_option.value)}"
    return Act(event_id=f"view:{sent.view.id}", payload=Commanded(actor=actor, place=place, text=text, said_at=at))
