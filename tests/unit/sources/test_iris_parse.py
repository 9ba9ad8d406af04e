"""Payloads of Iris become Known only when every field that counts is as known; nothing makes a parser raise."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import RefusedError, UnreachableError, UnrecognisedError
from bot.model.job import Job, JobState, Task, TaskState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.sources.iris.client_age import client_words
from bot.sources.iris.failure import NotFoundError, of_http, says_no_such_job
from bot.sources.iris.lines import parse_entries, parse_printed
from bot.sources.iris.parse import parse_descendants, parse_job_status, parse_listed_job, parse_task, parse_tasks
from bot.sources.iris.tables import COLUMNS_SQL, parse_columns, parse_tree, tree_sql

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
JOB = JobId("/me/boom")

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=12)
NAMES = """
    attemptId attempts attemptUid data entries epochMs error exitCode finishedAt has_children hasMore job jobId jobs key
    memoryPeakMb nodeName pendingReason resourceUsage startedAt state submittedAt task task_id tasks timestamp
"""
names = st.sampled_from(NAMES.split())
words = st.sampled_from(["/me/boom", "/me/boom/0", "/me/boom/train", "5", "JOB_STATE_RUNNING", "TASK_STATE_FAILED"])
payloads = st.recursive(
    leaves | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=4), inner, max_size=6),
    max_leaves=25,
)


def status(**fields: Any) -> dict[str, Any]:
    job = {"jobId": "/me/boom", "state": "JOB_STATE_FAILED", "submittedAt": {"epochMs": "1795976322863"}}
    return {"job": job | fields, "request": {"environment": {"envVars": {"SECRET": "hunter2"}}}}


def job_of(reading: Reading[tuple[Job, bool | None]]) -> Job:
    assert isinstance(reading, Known), reading
    return reading.value[0]


@given(payloads)
def test_no_payload_makes_a_parser_raise(payload: object) -> None:
    for reading in (
        parse_job_status(payload, AT, JOB),
        parse_job_status({"job": payload}, AT, JOB),
        parse_descendants(payload, AT, JOB),
        parse_listed_job(payload, AT, JOB),
        parse_tasks(payload, AT, JOB),
        parse_tasks({"tasks": [payload]}, AT, JOB),
        parse_task({"task": payload}, AT, JOB),
        parse_entries(payload, AT),
        parse_printed(payload, AT, None, 10, now=AT),
        parse_columns(payload, AT),
        parse_tree(payload, AT, JOB, AT),
    ):
        assert isinstance(reading, Known | Unknown)


@given(st.dictionaries(names, payloads, max_size=2))
def test_no_single_odd_field_makes_a_parser_raise(odd: dict[str, object]) -> None:
    attempt = {"attemptId": 0, "state": "TASK_STATE_FAILED"}
    task = {"taskId": "/me/boom/0", "state": "TASK_STATE_FAILED"}
    entry = {"timestamp": {"epochMs": "1795976322863"}, "data": "hello", "key": "/me/boom/0:0"}
    for reading in (
        parse_job_status(status(**odd), AT, JOB),
        parse_task({"task": task | odd}, AT, JOB),
        parse_task({"task": task | {"attempts": [attempt | odd]}}, AT, JOB),
        parse_entries({"entries": [entry | odd]}, AT),
    ):
        assert isinstance(reading, Known | Unknown)


@given(st.text(st.characters(codec=None)))
def test_no_text_makes_a_table_or_a_log_raise(text: str) -> None:
    for reading in (
        parse_tree(text, AT, JOB, AT),
        parse_tree("j_job_id,j_state,j_submitted_at_ms\r\n" + text, AT, JOB, AT),
        parse_printed("[12:00:00] task=/me/boom/0 | " + text, AT, None, 10, now=AT),
    ):
        assert isinstance(reading, Known | Unknown)


@given(st.integers() | st.text())
def test_a_state_is_known_or_the_reading_is_unknown_and_names_the_field(state: int | str) -> None:
    reading = parse_job_status(status(state=state), AT, JOB)

    known = {*range(1, 9), *map(str, range(1, 9)), *(s.value for s in JobState)}
    match reading:
        case Known():
            assert str(state).lower().removeprefix("job_state_").lstrip("0") in {str(each) for each in known}
        case Unknown(reason=reason, detail=detail):
            assert reason is Gap.UNRECOGNISED
            assert "job.state" in detail


@pytest.mark.parametrize("state", ["JOB_STATE_PAUSED", "JOB_STATE_UNSPECIFIED", 0, 9, 13, None, True, "", ["5"]])
def test_a_state_from_the_future_is_unknown(state: object) -> None:
    reading = parse_job_status(status(state=state), AT, JOB)

    assert isinstance(reading, Unknown)
    assert "job.state" in reading.detail


@pytest.mark.parametrize(
    "payload",
    [
        status(),
        {"job": {"job_id": "/me/boom", "state": 5, "submitted_at": {"epoch_ms": 1795976322863}}},
        {"job": {"jobId": "/me/boom", "state": "failed", "submittedAt": {"epochMs": "1795976322863"}}},
    ],
    ids=["rpc", "cli", "summary"],
)
def test_every_spelling_of_a_job_means_the_same(payload: object) -> None:
    job = job_of(parse_job_status(payload, AT, JOB))

    assert (job.state, job.started_at, job.parent) == (JobState.FAILED, None, None)
    assert job.submitted_at == datetime(2026, 11, 29, 18, 18, 42, 863000, tzinfo=UTC)


def test_the_request_with_its_environment_is_not_kept() -> None:
    assert "hunter2" not in repr(parse_job_status(status(), AT, JOB))


def test_the_pending_reason_of_an_ended_job_is_history() -> None:
    ended = job_of(parse_job_status(status(pendingReason="Exit code: 7"), AT, JOB))
    waiting = job_of(parse_job_status(status(state=1, pendingReason="Insufficient CPU"), AT, JOB))

    assert (ended.pending_reason, waiting.pending_reason) == ("", "Insufficient CPU")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"device": {"tpu": {"variant": "v5p-64", "count": 4}}}, ("v5p-64", 4)),
        ({"device": {"gpu": {"variant": "H100", "count": "8"}}}, ("H100", 8)),
        ({"device": {"gpu": {"variant": "", "count": 8}}}, ("gpu", 8)),
        ({"device": {"cpu": {"variant": "cpu"}}}, ("", 0)),
        ({"device": {}}, ("", 0)),
        ({"cpuMillicores": 100}, ("", 0)),
        (None, (None, None)),
        ({"device": {"tpu": {"variant": "", "count": 4}}}, (None, 4)),
        ({"device": {"tpu": "v5p-64"}}, (None, None)),
        ({"device": {"tpu": {"variant": "v5p-64", "count": "four"}}}, (None, None)),
        ([], (None, None)),
    ],
)
def test_what_a_job_asks_for_is_told_or_not_told_and_never_guessed(
    resources: object, expected: tuple[str | None, int | None]
) -> None:
    job = job_of(parse_job_status(status(resources=resources), AT, JOB))

    assert (job.accelerator, job.accelerators) == expected


def test_another_jobs_answer_is_not_taken_for_ours() -> None:
    assert isinstance(parse_job_status(status(jobId="/me/boom2"), AT, JOB), Unknown)


def task_of(**fields: Any) -> Task:
    reading = parse_task({"task": {"taskId": "/me/boom/0", "state": "TASK_STATE_FAILED"} | fields}, AT, JOB)
    assert isinstance(reading, Known), reading
    return reading.value


@pytest.mark.parametrize(
    ("state", "given_code", "expected"),
    [
        ("FAILED", 7, 7),
        ("FAILED", -9, -9),
        ("FAILED", 0, None),
        ("SUCCEEDED", 0, 0),
        ("KILLED", 0, None),
        ("KILLED", 7, 7),
        ("RUNNING", 0, None),
        ("RUNNING", 3, None),
    ],
)
def test_a_zero_beside_an_end_that_is_no_success_says_nothing(
    state: str, given_code: int, expected: int | None
) -> None:
    assert task_of(state=f"TASK_STATE_{state}", exitCode=given_code).exit_code == expected


def test_attempts_are_oldest_first_with_their_uids_and_nodes() -> None:
    attempt = {"state": "TASK_STATE_FAILED", "exitCode": 7, "workerId": "w-1", "nodeName": ""}
    task = task_of(
        attempts=[
            attempt | {"attemptId": 1, "attemptUid": "bb", "state": "TASK_STATE_RUNNING", "nodeName": "node-7"},
            attempt | {"attemptId": 0, "attemptUid": "aa"},
        ],
        resourceUsage={"memoryPeakMb": "309"},
    )

    assert [(a.attempt, a.uid, a.state, a.node) for a in task.attempts] == [
        (0, "aa", TaskState.FAILED, "w-1"),
        (1, "bb", TaskState.RUNNING, "node-7"),
    ]
    assert task.peak_memory_bytes == 309 * 2**20


@pytest.mark.parametrize("fields", [{"exitCode": "seven"}, {"taskId": "/me/boom2/0"}, {"attempts": {}}, {"state": 13}])
def test_a_field_of_another_shape_makes_the_task_unknown(fields: dict[str, Any]) -> None:
    task = {"taskId": "/me/boom/0", "state": "TASK_STATE_FAILED"} | fields

    assert isinstance(parse_task({"task": task}, AT, JOB), Unknown)


def test_neighbours_are_not_descendants() -> None:
    jobs = [status(jobId=name)["job"] for name in ("/me/boom", "/me/boom2", "/me/boom2/train", "/me/boom/train")]

    reading = parse_descendants({"jobs": jobs, "hasMore": False}, AT, JOB)

    assert isinstance(reading, Known)
    assert [job.job_id for job in reading.value[0]] == ["/me/boom/train"]


def test_the_tree_query_matches_no_neighbour_and_names_no_environment() -> None:
    sql = tree_sql(JobId("/me/a_b%c'd"), {("jobs", "job_id"), ("jobs", "environment_json")})

    assert "WHERE j.job_id = '/me/a_b%c''d' OR j.job_id LIKE '/me/a\\_b\\%c''d/%' ESCAPE '\\'" in sql
    assert sql[:6] == COLUMNS_SQL[:6] == "SELECT"
    assert "environment" not in sql


@pytest.mark.parametrize(
    ("http", "body", "expected"),
    [
        (404, {"code": "not_found", "message": "Job /me/boom not found"}, NotFoundError),
        (404, None, UnrecognisedError),
        (500, {"code": "internal", "message": "Job name must use canonical format: x"}, UnrecognisedError),
        (500, {"code": "unknown", "message": "malformed JSON"}, UnrecognisedError),
        (500, None, UnreachableError),
        (503, {"code": "unavailable", "message": "starting"}, UnreachableError),
        (401, {"code": "unauthenticated", "message": "Missing authentication"}, RefusedError),
        (403, None, RefusedError),
        (302, None, RefusedError),
        (400, {"code": "failed_precondition", "message": "client is too old"}, RefusedError),
        (415, None, UnrecognisedError),
    ],
)
def test_an_http_error_means_what_its_code_says_before_its_status(
    http: int, body: dict[str, str] | None, expected: type
) -> None:
    error = of_http(http, json.dumps(body).encode() if body else b"")

    assert type(error) is expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Job /me/boom not found", True),
        ("No job named '/me/boom'. Did you mean: /me/boom2?", True),
        ("Job /me/boom2 not found", False),
        ("Task /me/boom/0 not found", False),
        ("Job /me/boom/train not found", False),
    ],
)
def test_absence_is_about_this_very_job(message: str, expected: bool) -> None:
    assert says_no_such_job(NotFoundError("iris", message), JOB) is expected


def test_how_a_submit_command_calls_the_client_is_found() -> None:
    assert client_words(("uv", "run", "iris", "--config", "c.yaml", "job", "run", "--", "iris")) == (
        "uv",
        "run",
        "iris",
    )
    assert client_words(("bash", "launch.sh", "--", "iris")) == ()
