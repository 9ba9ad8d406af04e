"""How the API server is reached: address, whom to trust, and what to show. Blocking; made anew for each question.

Tokens, certificates and kubeconfigs rotate while Hero runs, so nothing of them is kept.
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.errors import RefusedError, UnrecognisedError
from bot.regular_files import open_regular
from bot.settings import KubernetesSettings
from bot.sources.gaps import refused_by_system
from bot.sources.kubernetes.failure import SERVICE
from bot.sources.kubernetes.kubeconfig import Chosen, User, choose

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's own account (kubernetes.io, "Accessing the Kubernetes API from a Pod")."""

_NAMESPACE = "iris"
"""Iris' default (marin-iris 0.2.227, ``iris/cluster/config.py``)."""
_FILE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Access:
    """One way to one API server."""

    url: str
    namespace: str
    tls: ssl.SSLContext
    token: str | None = field(default=None, repr=False)
    proxy: str | None = None
    server_name: str | None = None
    """The name in the server's certificate, when it is not the address'."""


def open_access(settings: KubernetesSettings, environment: Mapping[str, str], account: Path) -> Access:
    """Read whatever the settings name.

    Args:
        settings: the section.
        environment: where a pod is told of its API server.
        account: where a pod's own account lies.

    Raises:
        ServiceError: a file cannot be read or used; the detail names it.
    """
    if settings.api_url is not None:
        return _by_address(settings, settings.api_url)
    if settings.kubeconfig is not None:
        return _by_kubeconfig(settings, settings.kubeconfig)
    return _in_cluster(settings, environment, account)


def _by_address(settings: KubernetesSettings, url: str) -> Access:
    token = settings.token.get_secret_value() if settings.token else None
    if settings.token_file is not None:
        token = _text(settings.token_file).strip() or token
    return Access(
        url=url.rstrip("/"),
        namespace=settings.namespace or _NAMESPACE,
        tls=_trusting(_text(settings.ca_file) if settings.ca_file else None, settings.ca_file),
        token=token,
    )


def _in_cluster(settings: KubernetesSettings, environment: Mapping[str, str], account: Path) -> Access:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise RefusedError(
            SERVICE, "KUBERNETES_SERVICE_HOST is not set: Hero runs in no pod; set [kubernetes] api_url or kubeconfig"
        )
    authority = account / "ca.crt"
    return Access(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=settings.namespace or _text(account / "namespace").strip() or _NAMESPACE,
        tls=_trusting(_text(authority), authority),
        token=_text(account / "token").strip(),
    )


def _by_kubeconfig(settings: KubernetesSettings, file: Path) -> Access:
    chosen = choose(_text(file), settings.context, str(file))
    cluster, user = chosen.cluster, chosen.user
    authority = _given(cluster.certificate_authority_data, cluster.certificate_authority, file)
    tls = _trusting(authority, file)
    _present(tls, user, file)
    token = user.token.get_secret_value() if user.token else None
    if token is None and user.token_file is not None:
        token = _text(file.parent / user.token_file).strip()
    return Access(
        url=cluster.server.rstrip("/"),
        namespace=_namespace(settings, chosen),
        tls=tls,
        token=token,
        proxy=cluster.proxy_url,
        server_name=cluster.tls_server_name,
    )


def _namespace(settings: KubernetesSettings, chosen: Chosen) -> str:
    return settings.namespace or chosen.namespace or _NAMESPACE


def _trusting(authority: str | None, where: Path | None) -> ssl.SSLContext:
    if authority is not None and not authority.strip():  # an empty one would stand for the system's
        raise UnrecognisedError(SERVICE, f"the certificate authority in {where} is empty")
    try:
        return ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise UnrecognisedError(SERVICE, f"the certificate authority in {where} cannot be used: {error}") from error


def _present(tls: ssl.SSLContext, user: User, file: Path) -> None:
    """Add the client certificate, if there is one; OpenSSL reads such from files alone."""
    key_data = user.client_key_data.get_secret_value() if user.client_key_data else None
    certificate = _given(user.client_certificate_data, user.client_certificate, file)
    key = _given(key_data, user.client_key, file)
    if certificate is None or key is None:
        return
    with tempfile.TemporaryDirectory(prefix="hero-") as own:  # its owner's alone, and gone at once
        paths = Path(own, "certificate.pem"), Path(own, "key.pem")
        for path, text in zip(paths, (certificate, key), strict=True):
            path.write_text(text, encoding="utf-8")
        try:
            tls.load_cert_chain(*paths, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            detail = f"the client certificate in {file} cannot be used ({type(error).__name__})"
            raise UnrecognisedError(SERVICE, detail) from None


def _no_password() -> str:
    """Keep OpenSSL from asking for one at the terminal."""
    return ""


def _given(data: str | None, path: str | None, file: Path) -> str | None:
    """Return what stands in the kubeconfig itself in base64, or in the file that it names, relative to it."""
    if data is not None:
        try:
            return base64.b64decode(data, validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            raise UnrecognisedError(SERVICE, f"{file} holds a certificate or key that is no base64") from None
    return None if path is None else _text(file.parent / path)


def _text(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return stream.read(_FILE_BYTES).decode("utf-8")
    except OSError as error:
        raise refused_by_system(SERVICE, error) from error
    except UnicodeDecodeError:
        raise UnrecognisedError(SERVICE, f"{path} is no text") from None
