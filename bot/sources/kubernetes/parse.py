"""From a pod as the API server tells it to ``bot.model.pods``; pure.

Whose pod it is. Iris (marin-iris 0.2.20, 0.2.58, 0.2.89 and 0.2.227, ``iris/cluster/backends/k8s/tasks.py``) writes a
task's id ``/USER/JOB/0`` whole in two places: the annotation ``iris.task_id`` (0.2.89 and later) and the variable
``IRIS_TASK_ID`` of the container ``task`` (all; with ``:ATTEMPT`` behind it, in the oldest only from the first retry
on). The label ``iris.task_hash`` holds the first 16 hexadecimal digits of its SHA-256. Name and labels are rewritten
and cut at 63 characters: ``/me/a/b`` and ``/me/a.b`` have the same labels, and so have two long names. They can show
that a pod is *not* one of a job, and nothing else.
"""

import hashlib
import re
from typing import Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bot.model.pods import Pod
from bot.model.value import JobId

_CONTAINER = "task"
_VARIABLE = "IRIS_TASK_ID"
_ATTEMPT_UID = "IRIS_ATTEMPT_UID"
_HASH_LABEL = "iris.task_hash"
_ID_LABEL = "iris.task_id"
_LABEL_CHARS = 63
_TASK_ID = re.compile(r"(?P<job>(?:/[^/\n]+){2,})/(?P<index>[0-9]{1,9})(?::(?P<attempt>[0-9]{1,9}))?")


class _Raw(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class _Meta(_Raw):
    name: str
    uid: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = Field(default=None, repr=False)
    created: AwareDatetime | None = Field(default=None, alias="creationTimestamp")
    deleted: AwareDatetime | None = Field(default=None, alias="deletionTimestamp")


class _Variable(_Raw):
    name: str
    value: str | None = Field(default=None, repr=False)


class _Container(_Raw):
    name: str
    env: tuple[_Variable, ...] | None = Field(default=None, repr=False)


class _Spec(_Raw):
    containers: tuple[_Container, ...]
    node: str | None = Field(default=None, alias="nodeName")


class _Terminated(_Raw):
    exit_code: int = Field(alias="exitCode")
    reason: str | None = None


class _Waiting(_Raw):
    reason: str | None = None


class _State(_Raw):
    terminated: _Terminated | None = None
    waiting: _Waiting | None = None


class _ContainerStatus(_Raw):
    name: str
    restarts: int = Field(default=0, alias="restartCount")
    state: _State | None = None
    last_state: _State | None = Field(default=None, alias="lastState")


class _Condition(_Raw):
    type: str
    status: str
    reason: str | None = None


class _Status(_Raw):
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
    reason: str | None = None
    started: AwareDatetime | None = Field(default=None, alias="startTime")
    containers: tuple[_ContainerStatus, ...] | None = Field(default=None, alias="containerStatuses")
    conditions: tuple[_Condition, ...] | None = None


class RawPod(_Raw):
    """What Hero looks at of a pod; everything else, and every other variable, is dropped as it is read."""

    metadata: _Meta
    spec: _Spec
    status: _Status


class Names(NamedTuple):
    """Where the settings say that an identity stands."""

    task_annotation: str
    attempt_label: str


class Identified(NamedTuple):
    """The pods of one job, and those of which nobody can say whose they are."""

    pods: tuple[Pod, ...]
    unverified: tuple[str, ...]
    """Names of pods that may be the job's: their identity is missing or contradicts itself."""


def of_job(found: tuple[RawPod, ...], job_id: JobId, names: Names) -> Identified:
    """Return the pods of a job's tasks and of those of every job below it, by task and age."""
    pods: list[Pod] = []
    unverified: list[str] = []
    for raw in found:
        task = _task_of(raw, names)
        if task is None:
            if _may_be_below(raw, job_id):
                unverified.append(raw.metadata.name)
        elif task.job_id == job_id or task.job_id.startswith(f"{job_id}/"):
            pods.append(_pod(raw, task, names))
    pods.sort(key=lambda pod: (pod.job_id, pod.task_index, pod.created_at is None, pod.created_at, pod.name))
    return Identified(tuple(pods), tuple(sorted(unverified)))


class _TaskName(NamedTuple):
    job_id: JobId
    task: int
    attempt: int | None


def _task_of(raw: RawPod, names: Names) -> _TaskName | None:
    """Return the identity when every place that tells it whole agrees; None when none does, or they differ."""
    told = [(raw.metadata.annotations or {}).get(names.task_annotation), _variable(raw, _VARIABLE)]
    parts = [_TASK_ID.fullmatch(each) for each in told if each]
    if not parts or any(each is None for each in parts):
        return None
    found = {(each["job"], each["index"]) for each in parts if each is not None}
    if len(found) != 1:
        return None
    [(job, index)] = found
    digest = (raw.metadata.labels or {}).get(_HASH_LABEL)
    if digest and hashlib.sha256(f"{job}/{index}".encode()).hexdigest()[: len(digest)] != digest:
        return None
    attempts = [int(each["attempt"]) for each in parts if each is not None and each["attempt"]]
    return _TaskName(JobId(job), int(index), attempts[0] if attempts else None)


def _may_be_below(raw: RawPod, job_id: JobId) -> bool:
    """Whether the rewritten label does not rule out that this is a pod of the job."""
    label = (raw.metadata.labels or {}).get(_ID_LABEL, "")
    wanted = rewritten(f"{job_id}/0").rpartition(".")[0] + "."
    shared = min(len(label), len(wanted))
    return label[:shared] == wanted[:shared]


def rewritten(value: str) -> str:
    """Return what Iris makes of an id for a label: characters other than letters, digits and ``-_.`` become dots."""
    dotted = "".join(char if char.isalnum() or char in "-_." else "." for char in value).strip("-_.")
    return dotted[:_LABEL_CHARS].rstrip("-_.")


def _pod(raw: RawPod, task: _TaskName, names: Names) -> Pod:
    meta, status = raw.metadata, raw.status
    label = (meta.labels or {}).get(names.attempt_label, "")
    own = _own_status(raw)
    state = (own.state if own else None) or _State()
    return Pod(
        name=meta.name,
        uid=meta.uid,
        job_id=task.job_id,
        task_index=task.task,
        attempt=int(label) if label.isascii() and label.isdigit() else task.attempt,
        attempt_uid=_variable(raw, _ATTEMPT_UID) or "",
        phase=status.phase,
        node=raw.spec.node or None,
        reason=_reason(status, own),
        exit_code=state.terminated.exit_code if state.terminated else None,
        restarts=own.restarts if own else 0,
        created_at=meta.created,
        started_at=status.started,
        deleted_at=meta.deleted,
    )


def _reason(status: _Status, own: _ContainerStatus | None) -> str:
    """Return the most telling reason.

    The container's OOMKilled is proof and comes first. A disruption is told by the pod's own reason or by the condition
    ``DisruptionTarget`` (kubernetes.io, "Disruptions"), while the container then merely says Error.
    """
    state = (own.state if own else None) or _State()
    last = (own.last_state if own else None) or _State()
    ended = [each.terminated.reason or "" for each in (state, last) if each.terminated]
    if "OOMKilled" in ended:
        return "OOMKilled"
    disrupted = [
        each.reason or each.type
        for each in status.conditions or ()
        if each.type == "DisruptionTarget" and each.status == "True"
    ]
    waits = [state.waiting.reason or ""] if state.waiting else []
    unplaced = [
        each.reason or ""
        for each in status.conditions or ()
        if status.phase == "Pending" and each.type == "PodScheduled" and each.status == "False"
    ]
    return next((each for each in (status.reason or "", *disrupted, *ended, *waits, *unplaced) if each), "")


def _own_status(raw: RawPod) -> _ContainerStatus | None:
    """Return the status of the task's container: what runs beside it ends after it, and in its own way."""
    statuses = raw.status.containers or ()
    return next((each for each in statuses if each.name == _container(raw).name), None)


def _container(raw: RawPod) -> _Container:
    named = (each for each in raw.spec.containers if each.name == _CONTAINER)
    return next(named, raw.spec.containers[0] if raw.spec.containers else _Container(name=""))


def _variable(raw: RawPod, name: str) -> str | None:
    return next((each.value for each in _container(raw).env or () if each.name == name), None)
