"""What a run's owner promised at launch: ``runs/RUN_ID.toml`` (the procedures call it the launch record)."""

import hashlib
import json
import shlex
from collections.abc import Container
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from bot.model.durations import Duration
from bot.model.figures import FURTHER
from bot.model.launched import WORDS
from bot.model.part import Basis as Basis  # noqa: PLC0414 - a contract's own word: others know it from here
from bot.model.part import Part
from bot.model.trial import TrialContract
from bot.model.value import JobId, PersonName, RunId
from bot.model.wording import nearest

RUN_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
SLACK_THREAD_PATTERN = r"^([A-Z0-9]{1,32}:)?[0-9]{10}\.[0-9]{6}$"
GIT_NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}$"
"""Of remotes and branches: nothing that git would take for an option, an address or a pattern."""
PRODUCTION_FLOPS = 1e22
"""The procedure's guideline: above it a run is production (manage-hero-run, "Use this skill only when")."""

_NOT_SHAPING = (
    "approval",
    "channels",
    "cadence",
    "thresholds",
    "milestones",
    "metrics",
    "code",
    "config",
    "deputies",
    "owner",
    "hardware_tasks",
    "basis",
    "trial",
    "dri",
)
_SHELL_OPERATORS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "<"})


PRESERVED = ("batch_size", "optimizer", "mesh", "precision", "data", "checkpoint_interval")
"""What two runs of one recipe share (manage-hero-run, "Launch": inspect the reference job); length and seed are a run's
own."""


class RunKind(StrEnum):
    PRODUCTION = "production"
    DIAGNOSTIC = "diagnostic"


class TrackerContract(Part):
    """Where metrics are tracked under which identity."""

    mode: str = "disabled"
    """The tracker's own mode, e.g. ``online``; ``disabled`` when there is no tracker."""
    entity: str | None = None
    """Whose project it is: a user or a team."""
    project: str | None = None
    """The project that holds the run."""
    id: str | None = None
    """The run's id in the tracker; a relaunch has to go on under the same one."""
    name: str | None = None
    """The name that the tracker shows."""
    resume: str | None = None
    """What the tracker does when the id exists already, e.g. ``allow`` or ``must``."""


class IrisContract(Part):
    """The run is an Iris job; the controller is in the settings."""

    kind: Literal["iris"]
    """``iris``."""
    job_id: JobId = Field(examples=["/USER/JOB"])
    """The job to watch, ``/user/name``: the coordinator where there is one; its children are watched with it."""

    @field_validator("job_id")
    @classmethod
    def _is_canonical(cls, value: JobId) -> JobId:
        parts = value.split("/")
        if len(parts) != 3 or parts[0] or not parts[1] or not parts[2]:  # noqa: PLR2004 - "", user, name
            msg = f"{value!r} is no Iris job id; write it as /USER/JOB"
            raise ValueError(msg)
        return value


class LocalContract(Part):
    """The run is a supervised process group on Hero's own machine."""

    kind: Literal["local"]
    """``local``."""
    directory: str = Field(examples=["jobs"])
    """Where jobs keep their state and output, one directory a job below it; a relative path is below ``checkout``."""

    @property
    def job_id(self) -> None:
        """A local run has no job until Hero launches one."""
        return


class ChannelsContract(Part):
    """Where people talk about this run. What is missing Hero opens itself and remembers."""

    github_issue: int | None = Field(default=None, ge=1)
    """Number of the run's issue in the repository of the settings."""
    slack_thread: Annotated[str, StringConstraints(pattern=SLACK_THREAD_PATTERN)] | None = Field(
        default=None, examples=["1712345678.000100"]
    )
    """``ts`` of the thread's root; with ``CHANNEL:`` before it when it is in another channel than the settings'."""
    discord_thread: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{14,19}$")] | None = Field(
        default=None, examples=["112233445566778899"]
    )
    """Id of the run's thread."""


class CadenceContract(Part):
    """How often to look (manage-hero-run, "Babysitting"; babysit-job, "Cadence and Tooling Notes")."""

    check: Duration | None = None
    """None: the settings' ``[bot] cadence``, 15 minutes by default."""
    after_submit: Duration = timedelta(seconds=120)
    """One look this long after a submission, for an immediate failure."""
    steady: Duration = timedelta(seconds=570)
    """Between looks at a job that is only being babysat (a diagnostic)."""
    stabilise: Duration = timedelta(seconds=120)
    """How long a relaunched job is given before it counts as not dying at once."""

    @field_validator("*")
    @classmethod
    def _is_positive(cls, value: timedelta | None) -> timedelta | None:
        if value is not None and value <= timedelta():
            msg = "must be longer than zero; write it as 30s, 15m or 1h30m"
            raise ValueError(msg)
        return value


class MetricsContract(Part):
    """Where this run's figures are and what they are called there."""

    file: str | None = None
    """A JSONL file that the trainer appends one object a logged step to; relative to ``checkout``."""
    step: str = "step"
    """The run's own name for the optimizer step, a whole number."""
    loss: str = "loss"
    """The run's own name for the training loss."""
    grad_norm: str = "grad_norm"
    """The run's own name for the global gradient norm before clipping."""
    tokens_per_second: str = "tokens_per_second"
    """The run's own name for the throughput, tokens a second over all hosts."""
    step_time_s: str = "step_time_s"
    """The run's own name for the duration of a step, in seconds."""
    lr: str = "lr"
    """The run's own name for the learning rate."""
    timestamp: str = "timestamp"
    """The run's own name for the moment of a row: seconds since 1970, or ISO 8601 with a zone."""
    others: dict[str, str] = {}
    """The run's own names for further figures, by Hero's word, e.g. ``skipped_step = "optim/bad_step"``. The usual
    names of ``skipped_step``, ``eval_loss``, ``router_entropy``, ``token_drops``, ``router_z_loss`` and ``mfu`` are
    known without it; a word that begins with ``eval_`` is an evaluation's loss, and every one is watched for NaN."""

    @field_validator("others")
    @classmethod
    def _are_further(cls, value: dict[str, str]) -> dict[str, str]:
        for word, name in value.items():
            if word in cls.model_fields:
                msg = f"{word!r} is a key of [metrics] itself; write it there"
                raise ValueError(msg)
            if not word.isidentifier() or not name.strip():
                msg = f"{word!r} = {name!r}: the word is letters, digits and _, and the name is not empty"
                raise ValueError(msg)
        return value

    def further(self) -> dict[str, tuple[str, ...]]:
        """Return the names of each further figure by its word: the contract's own, or else the usual ones."""
        return {**FURTHER, **{word: (name,) for word, name in self.others.items()}}


class CodeContract(Part):
    """Which line of development the run's source has to be on."""

    remote: Annotated[str, StringConstraints(pattern=GIT_NAME_PATTERN)] = "origin"
    """The git remote that is fetched, by its name."""
    branch: Annotated[str, StringConstraints(pattern=GIT_NAME_PATTERN)] = "main"
    """The branch of that remote that has to contain ``source_sha``."""
    harmless: tuple[str, ...] = Field(default=(), examples=[["/experiments/other/"]])
    """Globs of further paths that cannot change what this run trains, e.g. of unrelated experiments, read as in a
    ``.gitignore``; added to ``[git] harmless`` of the settings. What the run itself writes never counts."""


class ConfigContract(Part):
    """Where the configuration is that the trainer resolved at its start, and what it calls things there."""

    file: str | None = Field(default=None, examples=["{output_root}/config.yaml"])
    """A JSON, YAML or TOML file, relative to ``checkout``, or an address; ``{output_root}`` and ``{run_id}`` are filled
    in. The trainer writes it anew at each launch. Without it the tracker's copy is read, where there is one."""
    keys: dict[str, str] = {}
    """The dotted keys of this run, or beginnings of such, by Hero's word: ``final_step``, ``batch_size``, ``seed``,
    ``optimizer``, ``mesh``, ``precision``, ``data``, ``checkpoint_interval``, ``initialize_from``, ``output_root``,
    ``checkpoint_root``, ``temporary_checkpoint_root``, ``startup_watchdog``, ``step_watchdog``, ``tracker``. Levanter's
    are known. A part that holds a dot itself is quoted: ``model."lm.head"``."""
    intended: tuple[str, ...] = ()
    """Dotted keys, or beginnings of such, that may differ from the instance before, or from the reference: a change
    that was agreed on."""
    launch: str | None = None
    """The configuration that the command launches with, written as ``file`` is: JSON, YAML or TOML, there before
    anything runs. The launch checklist takes the final step from it, and holds it against the launch before and against
    ``reference``. What the trainer adds to it by itself is not in it, and is not compared."""
    final_step_command: tuple[str, ...] = Field(default=(), repr=False)
    """Your own command that prints the final step which the launched code resolves: the only number of its last line,
    or a JSON object with it under its key or ``final_step``. It must change nothing: it runs whenever the checklist is
    read, before anybody has said yes; in ``checkout``, with ``[environment]``, without a shell, for 60 s at most."""
    reference: str | None = None
    """The job whose configuration this run has to preserve: its resolved configuration, as a file or an address; or a
    run id, whose last launch on record counts. What holds a ``/``, or ends in ``.json``, ``.yaml``, ``.yml`` or
    ``.toml``, is a file."""
    preserve: tuple[str, ...] = PRESERVED
    """What has to be as in the reference: Hero's words as in ``keys``, and dotted keys or beginnings of such."""

    @field_validator("launch", "reference")
    @classmethod
    def _is_named(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("is empty; name it, or leave the key out")
        return value

    @field_validator("final_step_command", mode="before")
    @classmethod
    def _is_argv(cls, raw: object) -> object:
        return _as_argv(raw)

    @field_validator("preserve")
    @classmethod
    def _are_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not each.strip("."):
                msg = f"{each!r} is no key; write one of {', '.join(WORDS)}, or a dotted key"
                raise ValueError(msg)
        return value

    @field_validator("keys")
    @classmethod
    def _are_words(cls, value: dict[str, str]) -> dict[str, str]:
        for word, key in value.items():
            if word not in WORDS:
                fix = nearest(word, WORDS) or f"use one of {', '.join(WORDS)}"
                msg = f"{word!r} is no word that Hero has for a configuration's value; {fix}"
                raise ValueError(msg)
            if not key.strip("."):
                msg = f"{word} = {key!r}: name the dotted key, as in trainer.num_train_steps"
                raise ValueError(msg)
        return value


class ApprovalContract(Part):
    """Whose yes a request needs beside the DRI's. Without this table: the DRI's alone."""

    deputies: bool = False
    """Whether a deputy may decide as the DRI may."""
    quorum: int = Field(default=1, ge=1, le=9)
    """How many different people of those who may decide have to say yes. One no is a no."""


class RetentionContract(Part):
    """How many saved states are kept."""

    resume: int = 1
    """How many of the newest complete checkpoints are kept to resume from."""
    milestones: tuple[int, ...] = ()
    """The steps whose checkpoints are kept for good."""


class MilestonesContract(Part):
    """At which steps people are told that the run got there."""

    every: int | None = Field(default=None, gt=0)
    """Every so many steps; none by default."""
    steps: tuple[int, ...] = ()
    """And at these."""


class Contract(Part):
    """A run's contract. A command may hold secrets: it is never shown, logged or stored unscrubbed."""

    run_id: Annotated[RunId, StringConstraints(pattern=RUN_ID_PATTERN)]
    """The run's name; taken from the file's name, with which it must agree when it is given."""
    kind: RunKind | None = None
    """``production`` or ``diagnostic``. Not given: a diagnostic only when the numbers below stay under 1e22 model
    FLOPs, else production."""
    model_flops: float | None = Field(default=None, gt=0)
    """Of the whole run."""
    params: float | None = Field(default=None, gt=0)
    """Parameters; with ``tokens`` it gives the model FLOPs as 6 x params x tokens."""
    tokens: float | None = Field(default=None, gt=0)
    """Tokens of the whole run."""
    dri: PersonName = Field(examples=["alice"])
    """The directly responsible individual, by the name in ``[people]``: whose yes a relaunch needs."""
    deputies: tuple[PersonName, ...] = ()
    """Who stands in for the DRI, by name; a relaunch still needs the yes of the DRI alone, unless ``[approval]`` says
    otherwise."""
    owner: PersonName | None = None
    """Who looks after the monitoring of this run."""
    command: tuple[str, ...] = Field(min_length=1, repr=False, examples=["python train.py"])
    """argv, or one line in the file; the exact command that submits (and resubmits) the run."""
    environment: dict[str, str] = Field(default={}, repr=False)
    """Set for the submit command in addition to Hero's own environment, e.g. ``IRIS_USER``."""
    checkout: str = "."
    """The directory in which the command is run, and below which every other relative path of this file lies. Itself
    relative to the directory that holds ``runs/``: where ``hero.toml`` lies, as ``hero init`` writes it."""
    source_sha: str | None = None
    """The commit that the run was launched from."""
    dirty_approved: bool = False
    """Whether changes that are not committed are part of the launch, by agreement."""
    bundle: str | None = None
    """The packed source that is submitted, when it is not the checkout."""
    hardware: str | None = None
    """What each task of the trainer asks for, as for Iris' ``--tpu`` or ``--gpu``: ``v5p-64``, ``H100x8``; several that
    will do with commas between. Written otherwise it is for people alone."""
    hardware_tasks: int | None = Field(default=None, gt=0)
    """How many tasks of that the trainer has, one a host: 8 for one slice of ``v5p-64``, 16 for two."""
    output_root: str = Field(examples=["out"])
    """Where the run writes: a path, relative to ``checkout``, or an address such as ``gs://BUCKET/RUN``."""
    checkpoint_roots: tuple[str, ...] = ()
    """Directories of ``step-N``, also relative to ``checkout``; by default ``<output_root>/checkpoints`` and
    ``resume_root``."""
    resume_root: str | None = None
    """A further directory of checkpoints that the trainer resumes from."""
    export_root: str | None = None
    """Where finished models are exported to."""
    traces_root: str | None = None
    """Where profiles are written."""
    session_root: str | None = None
    """Where this launch keeps what does not outlive it."""
    spill: str | None = None
    """Where temporary data goes that does not fit in memory."""
    datasets: tuple[str, ...] = ()
    """What it trains on, by name or address."""
    retention: RetentionContract = RetentionContract()
    checkpoint_bytes: int | None = Field(default=None, gt=0)
    """Size of one checkpoint."""
    initialize_from: str | None = None
    """The checkpoint that step 0 started from, when it did not start from nothing."""
    final_step: int | None = Field(default=None, gt=0)
    """The step at which the run is complete; without it Hero can't tell an early end from success."""
    final_step_source: str = ""
    """How the final step was found, e.g. ``config trainer.num_train_steps``."""
    basis: dict[str, Basis] = {}
    """The fields that are not simply stated."""
    tracker: TrackerContract = TrackerContract()
    orchestrator: Annotated[IrisContract | LocalContract, Field(discriminator="kind")]
    approval: ApprovalContract = ApprovalContract()
    channels: ChannelsContract = ChannelsContract()
    cadence: CadenceContract = CadenceContract()
    milestones: MilestonesContract = MilestonesContract()
    metrics: MetricsContract = MetricsContract()
    code: CodeContract = CodeContract()
    config: ConfigContract = ConfigContract()
    trial: TrialContract = TrialContract()
    thresholds: dict[str, dict[str, Any]] = {}
    """Per check id: the thresholds that differ from the check's defaults."""

    @field_validator("command", mode="before")
    @classmethod
    def _split_line(cls, raw: object) -> object:
        return _as_argv(raw)

    @model_validator(mode="before")
    @classmethod
    def _lift_assignments(cls, raw: Any) -> Any:
        """Move leading ``NAME=value`` words of the command into the environment, as a shell would."""
        if not isinstance(raw, dict) or not isinstance(raw.get("command"), str):
            return raw
        line = raw["command"].strip()
        given = raw.get("environment", {})
        if not isinstance(given, dict):
            return raw  # refused by its own field
        environment = dict(given)
        try:
            words = shlex.split(line)
        except ValueError:
            return raw
        while words and "=" in words[0] and words[0].split("=", 1)[0].isidentifier():
            name, value = words.pop(0).split("=", 1)
            environment[name] = value
        return {
            **raw,
            "command": tuple(words) if environment and not _has_operator(words) else line,
            "environment": environment,
        }

    @property
    def approvers(self) -> frozenset[PersonName]:
        """Everybody whose yes or no counts."""
        return frozenset((self.dri, *(self.deputies if self.approval.deputies else ())))

    @model_validator(mode="after")
    def _has_enough_approvers(self) -> Self:
        if self.approval.quorum > len(self.approvers):
            who = (
                "the DRI and the deputies are"
                if self.approval.deputies
                else "without `deputies = true` the DRI alone is"
            )
            msg = f"quorum = {self.approval.quorum}, and {who} {len(self.approvers)}; no request could ever be approved"
            raise ValueError(msg)
        return self

    @property
    def roots(self) -> tuple[str, ...]:
        """All directories in which checkpoints are looked for, each once."""
        given = self.checkpoint_roots or (f"{self.output_root.rstrip('/')}/checkpoints",)
        return tuple(dict.fromkeys((*given, *((self.resume_root,) if self.resume_root else ()))))

    @property
    def effective_kind(self) -> RunKind:
        """Production unless it is stated or computed to be a bounded diagnostic; doubt counts as production."""
        if self.kind is not None:
            return self.kind
        flops = self.model_flops or (6 * self.params * self.tokens if self.params and self.tokens else None)
        return RunKind.DIAGNOSTIC if flops is not None and flops < PRODUCTION_FLOPS else RunKind.PRODUCTION

    def basis_of(self, field: str) -> Basis:
        return self.basis.get(field, Basis.STATED)

    def basis_within(self, table: str, field: str) -> Basis:
        """Return how a table's field is known: as is said of it, else of its table; a default is Hero's inference."""
        if field not in getattr(self, table).model_fields_set:
            return Basis.INFERRED
        return self.basis.get(f"{table}.{field}", self.basis_of(table))

    def ending_at(self, step: int | None) -> "Contract":
        """Return the contract with this final step, as inferred, where it names none itself.

        For judging and showing. A plan is made from the contract as it is written.
        """
        if self.final_step is not None or step is None:
            return self
        basis = {**self.basis, "final_step": Basis.INFERRED}
        source = "the launched configuration"
        return self.model_copy(update={"final_step": step, "final_step_source": source, "basis": basis})

    @property
    def command_sha256(self) -> str:
        """Digest of what would really be run: arguments, added environment and directory."""
        content = json.dumps([list(self.command), sorted(self.environment.items()), self.checkout])
        return hashlib.sha256(content.encode()).hexdigest()

    def shape(self) -> dict[str, str]:
        """Return every field that shapes what would be launched, as JSON text; channels and thresholds do not.

        Values may hold secrets: scrub them before they are shown or stored.
        """
        shaping = self.model_dump(mode="json", exclude=set(_NOT_SHAPING))
        return {name: json.dumps(value, sort_keys=True) for name, value in sorted(shaping.items())}

    @property
    def config_digest(self) -> str:
        """SHA-256 over everything that shapes what would be launched."""
        return self.digest_without(frozenset())

    def digest_without(self, fields: Container[str]) -> str:
        """Return that digest over all but some fields: as it was before Hero knew of them."""
        shape = {name: text for name, text in self.shape().items() if name not in fields}
        return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()


def _as_argv(raw: object) -> object:
    match raw:
        case str():
            return split_line(raw)
        case list() | tuple():
            return raw
        case _:
            raise ValueError('must be a line or a list; write it as "python train.py" or ["python", "train.py"]')


def split_line(line: str) -> tuple[str, ...]:
    """Return the arguments of a command that is written in one line.

    Raises:
        ValueError: it cannot be split, or needs a shell.
    """
    try:
        words = shlex.split(line, comments=False)
    except ValueError as error:
        msg = f"the command line cannot be split into arguments ({error}); quote it as for sh, or give a list"
        raise ValueError(msg) from None
    operators = [word for word in words if word in _SHELL_OPERATORS]
    if operators:
        msg = (
            f"the command holds the shell operator {operators[0]!r}, and Hero runs it without a shell; "
            "use `checkout` for cd, [environment] for variables, and a script for the rest"
        )
        raise ValueError(msg)
    return tuple(words)


def _has_operator(words: list[str]) -> bool:
    return any(word in _SHELL_OPERATORS for word in words)
