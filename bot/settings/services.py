"""The tables about what is read of a run: orchestrators, trackers, telemetry, clusters."""

from datetime import timedelta
from pathlib import Path

from pydantic import Field, SecretStr

from bot.model.durations import Duration
from bot.model.harmless import HARMLESS
from bot.settings.section import ServiceSection


class IrisSettings(ServiceSection):
    """``[iris]``: the orchestrator, through its RPC when ``controller_url`` is given, else through its CLI."""

    controller_url: str | None = None
    """http(s) address of the controller."""

    config: Path | None = None
    """The cluster's configuration file, for ``iris --config``."""

    cluster: str | None = None
    """The cluster's name, for ``iris --cluster``."""

    cli: str = "iris"
    """How the CLI is called; may hold several words, e.g. ``uv run iris``."""

    token: SecretStr | None = None
    """Sent as a bearer token to the controller."""

    token_file: Path | None = None
    """A file that holds the token."""

    submit_deadline: Duration = timedelta(seconds=180)
    """How long a submission may take before its result counts as uncertain and the controller is asked."""

    log_lines: int = Field(default=3000, gt=0, le=20000)
    """How many of the newest log lines of the current instance are read."""

    client_age_warning: Duration = timedelta(days=10)
    """The controller refuses submissions of a client older than 14 days; Hero warns from this age on."""


class FinelogSettings(ServiceSection):
    """``[finelog]``: where trainers on Iris write their figures and signs of life."""

    url: str | None = None
    """http(s) address of a Finelog server; without it, the one behind the controller of ``[iris] controller_url``."""

    token: SecretStr | None = None
    """Sent as a bearer token; behind the controller that of ``[iris]`` is sent when this is not set."""

    token_file: Path | None = None
    """A file that holds the token."""


class WandbSettings(ServiceSection):
    """``[wandb]``: the experiment tracker, read through its public API; a trial also forks a run there."""

    entity: str | None = None
    """Whose projects are read when a contract does not say: a user or a team."""

    project: str | None = None
    """Which project is read when a contract does not say."""

    base_url: str = "https://api.wandb.ai"
    """Where the API is; dedicated and self-hosted servers have their own."""

    api_key: SecretStr | None = None
    """A key that may read the projects, and write to them for a trial; from HERO_WANDB__API_KEY or ``api_key_file``."""

    api_key_file: Path | None = None
    """A file that holds the key and nothing else."""

    reports: bool = False
    """Whether a W&B report is made of each trial, once; it needs ``hero-bot[wandb-reports]``, and a key that may write.
    """


class KubernetesSettings(ServiceSection):
    """``[kubernetes]``: the cluster that Iris puts its pods into, asked read-only as a further witness.

    The first that is set of ``api_url``, ``kubeconfig`` and ``in_cluster`` says how it is reached; without any it is
    not asked. The account needs nothing but ``list`` on pods in the namespace.
    """

    api_url: str | None = None
    """http(s) address of the API server, or of a ``kubectl proxy`` on this machine."""

    token: SecretStr | None = None
    """Sent as a bearer token to ``api_url``."""

    token_file: Path | None = None
    """A file that holds the token; read anew for each question, since such tokens rotate."""

    ca_file: Path | None = None
    """The authority that signed the certificate of ``api_url``, as PEM; without it the system's are trusted."""

    kubeconfig: Path | None = None
    """A kubeconfig: its server, authority and token or client certificate are used; exec plugins are not run."""

    context: str | None = None
    """Which context of ``kubeconfig``; without it the file's current one."""

    in_cluster: bool = False
    """Whether Hero runs in a pod of that cluster and asks with its service account."""

    namespace: str | None = None
    """Where the pods are; without it that of the context or of the service account, else ``iris``."""

    selector: str = "iris.managed=true,iris.runtime=iris-kubernetes"
    """Which pods are listed, as a label selector. Iris' own labels."""

    task_annotation: str = "iris.task_id"
    """The annotation that holds a task's whole id, ``/USER/JOB/0``; where it is missing, the variable ``IRIS_TASK_ID``
    of the task's container counts. The label of the same name is cut and rewritten, and never believed."""

    attempt_label: str = "iris.attempt_id"
    """The label that holds the number of the attempt."""

    @property
    def is_set(self) -> bool:
        return self.api_url is not None or self.kubeconfig is not None or self.in_cluster


class GitSettings(ServiceSection):
    """``[git]``: the source that a run is launched from, read with the ``git`` program of this machine."""

    program: str = "git"
    """How git is called: 2.31 or newer."""

    fetch: bool = True
    """Whether the branch that a contract's ``[code]`` names is fetched; nothing else of the checkout is ever changed.
    Without it "not pushed" and "not on the branch" stay unknown."""

    fetch_every: Duration = timedelta(hours=1)
    """How often at most that is done for one repository; it may take half of ``deadline``."""

    harmless: tuple[str, ...] = HARMLESS
    """Globs of paths that cannot change what is trained, read as in a ``.gitignore``; a list here replaces this one.
    Changes there block no relaunch. A contract adds its own, e.g. unrelated experiments, under ``[code] harmless``."""
