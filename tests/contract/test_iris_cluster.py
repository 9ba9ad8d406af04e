"""What Hero relies on in the real Iris, so that a new release of it which behaves otherwise fails here first."""

import re

import pytest

from tests.fakes.iris_cluster import IrisCluster, IrisRefusedError


def test_a_job_submitted_by_rpc_fails_with_its_tasks_exit_code_and_not_its_own(iris_cluster: IrisCluster) -> None:
    (iris_cluster.work / "exits_7.py").write_text("import sys\nsys.exit(7)\n")

    job_id = iris_cluster.launch("/contract/exits7", "python", "exits_7.py")
    state = iris_cluster.wait_for(job_id)

    assert (job_id, state) == ("/contract/exits7", "FAILED")
    [task] = iris_cluster.tasks(job_id)
    assert (task["exitCode"], task["state"], task["error"]) == (7, "TASK_STATE_FAILED", "Exit code: 7")
    assert task["attempts"][0]["attemptUid"]
    job = iris_cluster.rpc("GetJobStatus", {"jobId": job_id})["job"]
    assert job["exitCode"] == 0


def test_the_cli_prints_the_job_id_alone_on_stdout_and_job_submitted_on_stderr(iris_cluster: IrisCluster) -> None:
    (iris_cluster.work / "ends.py").write_text("print('step 1 loss 0.5')\n")

    submitted = iris_cluster.run_cli(
        "job", "run", "--no-wait", "--no-sync", "--job-name", "by-cli", "--", "python", "ends.py"
    )

    assert submitted.returncode == 0, submitted.stderr
    job_id = submitted.stdout.strip()
    assert re.fullmatch(r"/[^/\s]+/by-cli", job_id)
    assert f"Job submitted: {job_id}\n" in submitted.stderr
    assert iris_cluster.wait_for(job_id) == "SUCCEEDED"


def test_a_name_that_still_runs_is_refused_and_an_unknown_job_is_known_to_be_none(iris_cluster: IrisCluster) -> None:
    job_id = iris_cluster.launch("/contract/long", "python", "-c", "import time; time.sleep(300)")

    with pytest.raises(IrisRefusedError) as namesake:
        iris_cluster.launch("/contract/long", "python", "-c", "pass")
    with pytest.raises(IrisRefusedError) as unknown:
        iris_cluster.rpc("GetJobStatus", {"jobId": "/contract/nope"})

    assert (namesake.value.status, namesake.value.code) == (409, "already_exists")
    assert (unknown.value.status, unknown.value.code) == (404, "not_found")
    assert iris_cluster.state("/contract/nope") is None
    iris_cluster.rpc("TerminateJob", {"jobId": job_id})
    assert iris_cluster.wait_for(job_id) == "KILLED"
