"""A kubeconfig: one context's server, authority and credentials. Pure; reading the files it names is for ``access``.

Exec plugins and auth providers run programs to get a token, which a watcher that must not hang or prompt does not.
"""

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from bot.errors import RefusedError, UnrecognisedError
from bot.model.value import Value
from bot.sources.kubernetes.failure import SERVICE

_INSTEAD = (
    "give Hero a service account's token in [kubernetes] token_file, or run `kubectl proxy` on this machine and set "
    "[kubernetes] api_url to its address"
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class Cluster(_Part):
    """Where the API server is, and whom to trust."""

    server: str
    certificate_authority: str | None = Field(default=None, alias="certificate-authority")
    certificate_authority_data: str | None = Field(default=None, alias="certificate-authority-data")
    insecure_skip_tls_verify: bool = Field(default=False, alias="insecure-skip-tls-verify")
    proxy_url: str | None = Field(default=None, alias="proxy-url")
    tls_server_name: str | None = Field(default=None, alias="tls-server-name")


class User(_Part):
    """Who asks."""

    token: SecretStr | None = None
    token_file: str | None = Field(default=None, alias="tokenFile")
    client_certificate: str | None = Field(default=None, alias="client-certificate")
    client_certificate_data: str | None = Field(default=None, alias="client-certificate-data", repr=False)
    client_key: str | None = Field(default=None, alias="client-key")
    client_key_data: SecretStr | None = Field(default=None, alias="client-key-data")
    username: str | None = None
    exec: dict[str, Any] | None = Field(default=None, repr=False)
    auth_provider: dict[str, Any] | None = Field(default=None, alias="auth-provider", repr=False)


class _Context(_Part):
    cluster: str
    user: str = ""
    namespace: str | None = None


class _NamedCluster(_Part):
    name: str
    cluster: Cluster


class _NamedUser(_Part):
    name: str
    user: User | None = None


class _NamedContext(_Part):
    name: str
    context: _Context


class _File(_Part):
    current_context: str = Field(default="", alias="current-context")
    contexts: list[_NamedContext] = []
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] | None = None


class Chosen(Value):
    """What one context stands for."""

    context: str
    cluster: Cluster
    user: User
    namespace: str | None


def choose(text: str, context: str | None, where: str) -> Chosen:
    """Return what the context stands for.

    Args:
        text: the file's.
        context: None for the file's current one.
        where: the file's name, for errors.

    Raises:
        RefusedError: there is no such context, or its credentials are of a kind that Hero does not use.
        UnrecognisedError: it is no kubeconfig.
    """
    file = _parse(text, where)
    name = context or file.current_context
    found = next((each.context for each in file.contexts if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in file.contexts) or "none"
        raise RefusedError(SERVICE, f"{where} has no context {name!r}; set [kubernetes] context to one of: {known}")
    cluster = next((each.cluster for each in file.clusters if each.name == found.cluster), None)
    if cluster is None:
        raise RefusedError(SERVICE, f"{where} has no cluster {found.cluster!r}, which context {name!r} names")
    user = next((each.user for each in file.users or () if each.name == found.user), None)
    if user is None and found.user:
        raise RefusedError(SERVICE, f"{where} has no user {found.user!r}, which context {name!r} names")
    return Chosen(
        context=name,
        cluster=_usable(cluster, where),
        user=_presentable(user or User(), where),
        namespace=found.namespace,
    )


def _parse(text: str, where: str) -> _File:
    try:
        return _File.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        # Its own text quotes the line, which may hold a token.
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        at = "" if line is None else f" at line {line + 1}"
        raise UnrecognisedError(SERVICE, f"{where} is no YAML{at}") from None
    except RecursionError:
        raise UnrecognisedError(SERVICE, f"{where} is nested too deeply") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise UnrecognisedError(SERVICE, f"{where} is no kubeconfig: {field}: {first['msg']}") from None


def _usable(cluster: Cluster, where: str) -> Cluster:
    if cluster.insecure_skip_tls_verify:
        raise RefusedError(
            SERVICE,
            f"{where} says insecure-skip-tls-verify, and Hero shows its token to no server that it cannot verify; "
            "name the server's certificate-authority instead",
        )
    return cluster


def _presentable(user: User, where: str) -> User:
    if user.exec is not None:
        raise RefusedError(
            SERVICE, f"{where} gets its token from the exec plugin {user.exec.get('command')!r}; {_INSTEAD}"
        )
    if user.auth_provider is not None:
        raise RefusedError(
            SERVICE, f"{where} gets its token from the auth provider {user.auth_provider.get('name')!r}; {_INSTEAD}"
        )
    if user.username is not None:
        raise RefusedError(SERVICE, f"{where} holds a user name and a password, which Hero does not send; {_INSTEAD}")
    return user
