"""What can go wrong with the data: the tokenizer is another than the one that the model was made for."""

import re

from bot.model.contract import Contract
from bot.model.reading import Known, Unknown
from bot.model.snapshot import Snapshot, Source
from bot.model.value import CheckId, Value
from bot.model.verdict import Fail, Finding, NotApplicable, Pass, Severity, Verdict
from checks.check import Check
from checks.current import instance_of, unseen
from checks.thresholds import NoThresholds

TOKENIZER_ID = CheckId("data.tokenizer")

_DIFFERS = r"(?:mismatch|do(?:es)? not (?:match|agree)|doesn't match|differs?\b|!=|not equal|inconsistent)"
_VOCABULARY = r"vocab(?:ulary)?[\s_-]*size"
_MISMATCH = re.compile(
    rf"{_VOCABULARY}.{{0,120}}?{_DIFFERS}|{_DIFFERS}.{{0,120}}?{_VOCABULARY}"
    r"|size mismatch for \S*(?:embed_tokens|lm_head|word_embeddings|wte)\b",
    re.IGNORECASE,
)
_LINE_CHARS = 2000


class Mismatch(Value):
    """The first line of this instance that says so; logs rotate."""

    instance: str = ""
    line: str = ""


def tokenizer(seen: Snapshot, _contract: Contract, _limits: NoThresholds, memory: Mismatch) -> tuple[Verdict, Mismatch]:
    """Fail once the log has said that tokenizer and model have vocabularies of different sizes."""
    current = instance_of(seen, memory.instance)
    memory = memory if current == memory.instance else Mismatch(instance=current)
    if not memory.line and isinstance(seen.log, Known):
        said = (line.text[:_LINE_CHARS] for line in seen.log.value.lines)
        line = next((text for text in said if _MISMATCH.search(text)), "")
        memory = memory.model_copy(update={"line": " ".join(line.split())[:300]})
    if memory.line:
        return Fail(finding=_finding(memory)), memory
    for reading in (seen.log, seen.jobs):
        if isinstance(reading, Unknown):
            return unseen(reading, "whether the tokenizer fits is not known"), memory
    if seen.job is None:
        return NotApplicable(reason="there is no job"), memory
    return Pass(), memory


def _finding(memory: Mismatch) -> Finding:
    return Finding(
        check=TOKENIZER_ID,
        key=memory.instance,
        severity=Severity.WARNING,
        summary="the log says that the tokenizer's vocabulary and the model's are of different sizes",
        evidence=(f"log: {memory.line}",),
        advice="Usually the tokenizer's address was rewritten without a revision pin and a cache holds another one. "
        "Compare tokenizer name, revision and cache with the last launch before trusting a loss of this run.",
    )


TOKENIZER = Check(
    id=TOKENIZER_ID,
    title="The tokenizer's vocabulary is not the model's",
    severity=Severity.WARNING,
    needs=(Source.JOBS, Source.LOG),
    source='babysit-job, "MarinFold-specific signals": tokenizer cache poisoning',
    thresholds=NoThresholds(),
    memory=Mismatch(),
    judge=tokenizer,
)
