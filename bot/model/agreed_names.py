"""What the gated figures of a trial are called by each of its two runs, as it was agreed.

A contract's ``[metrics]`` says by which key a figure is read. It may be edited while a trial is under way, and then an
agreed gate would judge something else than what the DRI said yes to. So the names are kept with the plan, and the rows
of a trial are read by them (deploy checklist, "Agree the plan": explicit gates).
"""

import re
from collections.abc import Iterable, Mapping

from bot.model.contract import Contract, MetricsContract
from bot.model.figures import FURTHER, LEVANTER

_FIGURES = tuple(LEVANTER)
"""The keys of ``[metrics]`` that are figures."""
_OF_THE_FILE = ("file", "step", "timestamp")
"""Those that say how a metrics file is read; without a file they change nothing."""
_OR = " | "
_NO_LETTER = re.compile(r"[^A-Za-z0-9_]")


def spelled(name: str) -> str:
    """Return a figure's name as telemetry spells it: ``moe/drops`` is ``moe_drops``."""
    return _NO_LETTER.sub("_", name)


def names_of(contract: Contract, metrics: Iterable[str]) -> dict[str, str]:
    """Return what a run calls the figures that gates are about, by the gates' word, and how its metrics file is read.

    A word that the contract leaves at its default stands for itself, and for the usual names of its source. Several
    usual names are joined by ``|``, the likeliest first.

    Args:
        contract: of that run.
        metrics: as gates write them; telemetry's spelling of one is a word of its own.
    """
    words = dict.fromkeys(word for metric in metrics for word in (metric, spelled(metric)))
    names = {word: _name_of(contract.metrics, word) for word in words}
    if contract.metrics.file is not None:
        names |= {key: getattr(contract.metrics, key) for key in _OF_THE_FILE}
    return names


def _name_of(metrics: MetricsContract, word: str) -> str:
    return str(getattr(metrics, word)) if word in _FIGURES else _OR.join(metrics.further().get(word, (word,)))


def with_names(contract: Contract, names: Mapping[str, str]) -> Contract:
    """Return the contract as a trial reads it: by the agreed names, whatever its ``[metrics]`` says today.

    A figure that no gate is about keeps today's name, but for one that was agreed for a gated figure.

    Args:
        contract: as it is written now.
        names: what ``names_of`` gave when the plan was agreed; nothing in a plan that is older than the names.
    """
    if not names:
        return contract
    metrics = contract.metrics
    agreed = {word: name for word, name in names.items() if word not in _OF_THE_FILE}
    taken = {spelled(each) for word, name in agreed.items() for each in _taken_by(word, name)}
    others = {word: name for word, name in metrics.others.items() if word not in agreed and spelled(name) not in taken}
    others |= {word: name for word, name in agreed.items() if word not in _FIGURES and not _is_usual(word, name)}
    figures = {
        word: MetricsContract.model_fields[word].default
        for word in _FIGURES
        if word not in agreed and spelled(getattr(metrics, word)) in taken
    }
    figures |= {word: name for word, name in agreed.items() if word in _FIGURES}
    of_file = {"file": None, **{key: names[key] for key in _OF_THE_FILE if key in names}}
    read = metrics.model_copy(update={**figures, **of_file, "others": others})
    return contract.model_copy(update={"metrics": read})


def _taken_by(word: str, name: str) -> tuple[str, ...]:
    """Return what no other word may stand for; nothing for a name of the run's own, which is read beside all words."""
    if word not in _FIGURES and word not in FURTHER and word == name:
        return ()
    is_default = word in _FIGURES and name == MetricsContract.model_fields[word].default
    return (*name.split(_OR), *((LEVANTER[word],) if is_default else ()))


def _is_usual(word: str, name: str) -> bool:
    """Whether that is what the word stands for where the contract says nothing of it."""
    return name == _OR.join(FURTHER.get(word, (word,)))


def say_names(names: Mapping[str, str]) -> str:
    """Return them as people read them; what is called by its own word is not repeated."""
    return ", ".join(word if word == name else f"{word} is {name}" for word, name in names.items())
