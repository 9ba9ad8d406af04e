"""Pods as the API server tells them: by whole identity or not at all, all pages or none, by every way in."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clock import SystemClock
from bot.commands.pods_probe import probe_kubernetes
from bot.model.pods import Pod
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.value import JobId
from bot.settings import KubernetesSettings
from bot.sources.kubernetes.source import KubernetesPods
from tests.fakes.certificates import Authority
from tests.fakes.kubernetes import TOKEN, KubernetesApi, iris_pod, refusal
from tests.fakes.snapshots import contract

JOB = JobId("/me/hero")
DEADLINE = timedelta(seconds=30)


@pytest.fixture
def api() -> Iterator[KubernetesApi]:
    with KubernetesApi() as server:
        yield server


def settings_of(api: KubernetesApi, **fields: Any) -> KubernetesSettings:
    given: dict[str, Any] = {"api_url": api.url, "token": TOKEN, "deadline": DEADLINE}
    return KubernetesSettings.model_validate(given | fields)


async def read(settings: KubernetesSettings, job_id: str = JOB, **parts: Any) -> Reading[tuple[Pod, ...]]:
    return await KubernetesPods(settings, SystemClock(), **parts).pods(contract(), JobId(job_id))


async def pods_of(api: KubernetesApi, job_id: str = JOB, **fields: Any) -> tuple[Pod, ...]:
    found = await read(settings_of(api, **fields), job_id)
    assert isinstance(found, Known), found
    return found.value


async def gap_of(api: KubernetesApi, **fields: Any) -> Unknown:
    found = await read(settings_of(api, **fields))
    assert isinstance(found, Unknown), found
    return found


async def test_the_pods_of_a_job_and_of_the_jobs_below_it_are_found_and_no_neighbours(api: KubernetesApi) -> None:
    mine = ["/me/hero/0", "/me/hero/train/0", "/me/hero/train/1"]
    api.pods = [iris_pod(each) for each in (*mine, "/me/hero2/0", "/me/her/0", "/you/hero/0", "/me/hero2/train/0")]

    found = await pods_of(api)

    assert [pod.task_id for pod in found] == mine
    assert {(pod.attempt, pod.phase, pod.node, pod.is_live) for pod in found} == {(0, "Running", "node-1", True)}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("/me/a/b/0", "/me/a.b/0"),
        ("/me/a b/0", "/me/a.b/0"),
        (f"/me/{'long-' * 14}one/0", f"/me/{'long-' * 14}two/0"),
    ],
)
async def test_jobs_whose_labels_are_alike_are_told_apart(api: KubernetesApi, ours: str, theirs: str) -> None:
    api.pods = [iris_pod(ours), iris_pod(theirs)]
    alike = [{**pod["metadata"]["labels"], "iris.task_hash": ""} for pod in api.pods]

    found = await pods_of(api, ours.rpartition("/")[0])

    assert alike[0] == alike[1]
    assert [pod.task_id for pod in found] == [ours]


async def test_a_pod_of_an_older_iris_is_known_by_its_containers_variable(api: KubernetesApi) -> None:
    """As marin-iris 0.2.58 makes it: no annotation."""
    older = iris_pod("/me/hero/3", attempt=2)
    del older["metadata"]["annotations"]
    del older["metadata"]["labels"]["iris.attempt_id"]
    api.pods = [older]

    [pod] = await pods_of(api)

    assert (pod.job_id, pod.task_index, pod.attempt) == (JOB, 3, 2)


def _without_identity(pod: dict[str, Any]) -> None:
    del pod["metadata"]["annotations"]
    del pod["spec"]["containers"][0]["env"]


def _with_another_hash(pod: dict[str, Any]) -> None:
    pod["metadata"]["labels"]["iris.task_hash"] = "0123456789abcdef"


def _with_two_identities(pod: dict[str, Any]) -> None:
    pod["metadata"]["annotations"]["iris.task_id"] = "/me/hero/1"


@pytest.mark.parametrize("spoil", [_without_identity, _with_another_hash, _with_two_identities])
async def test_a_pod_whose_identity_cannot_be_verified_makes_the_reading_unknown_where_it_may_be_ours(
    api: KubernetesApi, spoil: Any
) -> None:
    spoilt = iris_pod("/me/hero/0")
    spoil(spoilt)
    api.pods = [spoilt, iris_pod("/me/other/0")]

    gap = await gap_of(api)

    assert gap.reason is Gap.UNRECOGNISED
    assert "1 pods may be of /me/hero" in gap.detail
    assert await pods_of(api, "/me/other") != ()


async def test_how_a_pod_ended_is_told_by_its_tasks_container_and_not_by_the_one_beside_it(api: KubernetesApi) -> None:
    disrupted = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    api.pods = [
        iris_pod("/me/hero/0", phase="Failed", terminated={"exitCode": 137, "reason": "OOMKilled"}),
        iris_pod("/me/hero/1", phase="Failed", terminated={"exitCode": 1, "reason": "Error"}),
        iris_pod("/me/hero/2", phase="Failed", status={"reason": "Evicted", "containerStatuses": None}),
        iris_pod(
            "/me/hero/3",
            phase="Failed",
            terminated={"exitCode": 137, "reason": "Error"},
            status={"conditions": disrupted},
        ),
        iris_pod("/me/hero/4", phase="Pending", node=None),
    ]

    found = await pods_of(api)

    assert [(pod.reason, pod.exit_code, pod.is_live) for pod in found] == [
        ("OOMKilled", 137, False),
        ("Error", 1, False),
        ("Evicted", None, False),
        ("PreemptionByScheduler", 137, False),
        ("", None, True),
    ]


async def test_no_pod_is_an_answer(api: KubernetesApi) -> None:
    assert await pods_of(api) == ()
    [question] = api.questions
    assert question["path"] == "/api/v1/namespaces/iris/pods"
    assert question["labelSelector"] == "iris.managed=true,iris.runtime=iris-kubernetes"


async def test_every_page_is_read(api: KubernetesApi) -> None:
    api.pods = [iris_pod(f"/me/hero/{index}") for index in range(23)]
    api.page = 5

    assert len(await pods_of(api)) == 23
    assert len(api.questions) == 5


async def test_a_list_that_expires_while_it_is_read_is_begun_anew(api: KubernetesApi) -> None:
    api.pods = [iris_pod(f"/me/hero/{index}") for index in range(8)]
    api.page = 5
    api.on_page = lambda number: api.forget_lists() if number == 2 else None

    assert [pod.task_index for pod in await pods_of(api)] == list(range(8))
    assert ["continue" in question for question in api.questions] == [False, True, False, True]


async def test_a_list_that_always_expires_is_not_known(api: KubernetesApi) -> None:
    api.pods = [iris_pod(f"/me/hero/{index}") for index in range(8)]
    api.page = 5
    api.on_page = lambda _number: api.forget_lists()

    assert (await gap_of(api)).reason is Gap.UNREACHABLE


@pytest.mark.parametrize(
    ("answer", "reason", "says"),
    [
        (refusal(401, "Unauthorized", "Unauthorized"), Gap.REFUSED, "correct or renew the token"),
        (
            refusal(403, "Forbidden", "pods is forbidden"),
            Gap.REFUSED,
            "let the account list pods in the namespace iris",
        ),
        (refusal(404, "NotFound", "no such path"), Gap.UNRECOGNISED, "correct [kubernetes] api_url"),
        (refusal(400, "BadRequest", "unable to parse requirement"), Gap.UNRECOGNISED, "unable to parse requirement"),
        (refusal(429, "TooManyRequests", "please try again later"), Gap.UNREACHABLE, "please try again later"),
        (refusal(500, "InternalError", "etcdserver: leader changed"), Gap.UNREACHABLE, "leader changed"),
        ((302, b""), Gap.REFUSED, "redirects"),
        ((200, b"<html>Sign in</html>"), Gap.UNRECOGNISED, "no JSON"),
        ((200, {"kind": "NodeList", "metadata": {}, "items": []}), Gap.UNRECOGNISED, "no PodList"),
        ((200, {"kind": "PodList", "metadata": {}}), Gap.UNRECOGNISED, "items"),
        ((200, {"kind": "PodList", "metadata": {}, "items": [{"metadata": {}}]}), Gap.UNRECOGNISED, "items.0.metadata"),
    ],
)
async def test_what_is_no_list_is_never_an_empty_one_also_on_the_second_page(
    api: KubernetesApi, answer: tuple[int, Any], reason: Gap, says: str
) -> None:
    api.pods = [iris_pod(f"/me/hero/{index}") for index in range(8)]
    api.page = 5
    api.on_page = lambda _number: answer
    at_once = await gap_of(api)
    second = len(api.questions) + 2
    api.on_page = lambda number: answer if number == second else None

    later = await gap_of(api)

    assert [(gap.reason, says in gap.detail) for gap in (at_once, later)] == [(reason, True)] * 2, (at_once, later)


async def test_a_phase_that_hero_does_not_know_makes_it_unknown_and_no_environment_is_quoted(
    api: KubernetesApi,
) -> None:
    api.pods = [iris_pod("/me/hero/0", phase="Hibernating")]

    gap = await gap_of(api)

    assert (gap.reason, "status.phase" in gap.detail) == (Gap.UNRECOGNISED, True)
    assert "a-secret-in-a-pods-environment" not in gap.detail


async def test_a_server_that_does_not_answer_is_given_up_at_the_deadline(api: KubernetesApi) -> None:
    api.on_page = lambda _number: (0, None)

    assert (await gap_of(api, deadline="0.3s")).reason is Gap.TIMEOUT


async def test_a_token_that_rotated_is_read_anew(api: KubernetesApi, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("an-old-token\n")
    source = KubernetesPods(settings_of(api, token_file=file), SystemClock())

    before = await source.pods(contract(), JOB)
    file.write_text(f"{TOKEN}\n")
    after = await source.pods(contract(), JOB)

    assert isinstance(before, Unknown)
    assert before.reason is Gap.REFUSED
    assert isinstance(after, Known)


async def test_the_doctor_counts_the_pods_and_names_what_to_mend(api: KubernetesApi) -> None:
    [none] = await probe_kubernetes(settings_of(api), SystemClock())
    api.pods = [iris_pod("/me/hero/0")]
    [one] = await probe_kubernetes(settings_of(api), SystemClock())
    [refused] = await probe_kubernetes(settings_of(api, token="another-token"), SystemClock())
    [absent] = await probe_kubernetes(KubernetesSettings(), SystemClock())

    assert (none.ok, "namespace or selector" in none.fix) == (True, True)
    assert (one.ok, one.detail.startswith("1 pods match"), one.fix) == (True, True, "")
    assert (refused.ok, "correct or renew the token" in refused.detail) == (False, True)
    assert (absent.ok, absent.detail) == (True, "not configured")


# --- TLS and the ways in -----------------------------------------------------------------------------------------


async def test_a_server_of_an_own_authority_is_believed_only_when_the_authority_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with KubernetesApi(tls=authority.serving()) as api:
        api.pods = [iris_pod("/me/hero/0")]

        named = await read(settings_of(api, ca_file=authority.file))
        unnamed = await read(settings_of(api))

    assert isinstance(named, Known)
    assert len(named.value) == 1
    assert isinstance(unnamed, Unknown)
    assert (unnamed.reason, "set [kubernetes] ca_file" in unnamed.detail) == (Gap.REFUSED, True)


async def test_a_kubeconfigs_client_certificate_and_namespace_are_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client()
    with KubernetesApi(tls=authority.serving(clients_only=True)) as api:
        api.token = None
        api.pods = [iris_pod("/me/hero/0")]
        file = kubeconfig(
            tmp_path,
            server=api.url,
            cluster={"certificate-authority-data": base64.b64encode(authority.file.read_bytes()).decode()},
            user={
                "client-certificate": certificate.name,
                "client-key-data": base64.b64encode(key.read_bytes()).decode(),
            },
        )

        found = await read(KubernetesSettings(kubeconfig=file, deadline=DEADLINE))

    assert isinstance(found, Known), found
    assert len(found.value) == 1


async def test_a_pods_own_account_is_used(api: KubernetesApi, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "ca.crt").write_bytes(authority.file.read_bytes())
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("iris")
    with KubernetesApi(tls=authority.serving()) as inside:
        inside.pods = [iris_pod("/me/hero/0")]
        host, _, port = inside.url.removeprefix("https://").partition(":")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        settings = KubernetesSettings(in_cluster=True, deadline=DEADLINE)

        found = await read(settings, environment=environment, account=tmp_path)
        outside = await read(settings, environment={}, account=tmp_path)

    assert isinstance(found, Known), found
    assert len(found.value) == 1
    assert isinstance(outside, Unknown)
    assert "runs in no pod" in outside.detail


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"user": {"exec": {"command": "gke-gcloud-auth-plugin"}}}, "exec plugin 'gke-gcloud-auth-plugin'"),
        ({"user": {"auth-provider": {"name": "oidc"}}}, "auth provider 'oidc'"),
        ({"user": {"username": "me", "password": "hunter2"}}, "a user name and a password"),
        ({"cluster": {"insecure-skip-tls-verify": True}}, "insecure-skip-tls-verify"),
        ({"cluster": {"certificate-authority-data": "no base64!"}}, "no base64"),
        ({"cluster": {"certificate-authority": "nowhere.pem"}}, "nowhere.pem cannot be read"),
        ({"context": "other"}, "no context 'other'; set [kubernetes] context to one of: prod"),
        ({"text": "contexts: [token: hunter2"}, "is no YAML"),
        ({"text": "[1, 2]"}, "is no kubeconfig"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_says_why_and_tells_no_secret(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    context = fields.get("context")
    parts = {name: value for name, value in fields.items() if name != "context"}
    file = kubeconfig(tmp_path, **parts)

    found = await read(KubernetesSettings(kubeconfig=file, context=context, deadline=DEADLINE))

    assert isinstance(found, Unknown)
    assert says in found.detail
    assert "hunter2" not in found.detail


def kubeconfig(
    directory: Path,
    *,
    server: str = "https://127.0.0.1:1",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    text: str | None = None,
) -> Path:
    """Write a kubeconfig of one context, ``prod``; JSON is YAML too."""
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u", "namespace": "iris"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {"token": TOKEN}}],
    }
    file = directory / "kubeconfig"
    file.write_text(json.dumps(whole) if text is None else text)
    return file
