"""Lists pods page by page: all of them as of one moment, or an error; never a part.

Source: kubernetes.io, "Kubernetes API concepts", "Retrieving large results sets in chunks": ``limit`` and ``continue``,
and 410 Gone when the list that was begun is too old to be gone on with. No ``resourceVersion`` is sent, so that the
server answers from what is committed and not from a cache that may lag.
"""

import json
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.errors import RefusedError, UnreachableError, UnrecognisedError
from bot.sources.kubernetes.access import Access
from bot.sources.kubernetes.failure import SERVICE, ExpiredError, of_http
from bot.sources.kubernetes.parse import RawPod

_PAGE = 250
_MOST_PAGES = 200
_PAGE_BYTES = 64 * 2**20
_BEGINNINGS = 3
"""How often a list is begun; one that expires each time changes faster than it can be read."""


class _Meta(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    go_on: str | None = Field(default=None, alias="continue")


class _Page(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    kind: str
    metadata: _Meta
    items: tuple[RawPod, ...]


async def list_pods(access: Access, selector: str, *, timeout_s: float) -> tuple[RawPod, ...]:
    """Return every pod that the selector picks in the namespace.

    Raises:
        ServiceError: a page is missing, refused or of another shape, so that nothing is known.
    """
    headers = {"Accept": "application/json"}
    if access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    try:
        async with httpx.AsyncClient(
            headers=headers, verify=access.tls, proxy=access.proxy, timeout=timeout_s
        ) as client:
            for _ in range(_BEGINNINGS):
                try:
                    return await _whole(client, access, selector)
                except ExpiredError:
                    continue
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
        raise UnrecognisedError(SERVICE, f"{access.url} is no http(s) address: {error}") from error
    except httpx.DecodingError as error:
        raise UnrecognisedError(SERVICE, f"the answer cannot be decoded: {error}") from error
    except httpx.HTTPError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            detail = f"the certificate of {access.url} is not trusted: {error}; set [kubernetes] ca_file"
            raise RefusedError(SERVICE, detail) from error
        raise UnreachableError(SERVICE, f"{access.url}: {type(error).__name__}: {error}") from error
    raise UnreachableError(SERVICE, f"the list of pods expired {_BEGINNINGS} times while it was read")


async def _whole(client: httpx.AsyncClient, access: Access, selector: str) -> tuple[RawPod, ...]:
    path = f"{access.url}/api/v1/namespaces/{quote(access.namespace, safe='')}/pods"
    query = {"labelSelector": selector, "limit": str(_PAGE)}
    found: list[RawPod] = []
    for _ in range(_MOST_PAGES):
        page = _parse(await _get(client, access, path, query))
        found.extend(page.items)
        if not page.metadata.go_on:
            return tuple(found)
        query["continue"] = page.metadata.go_on
    raise UnrecognisedError(SERVICE, f"more than {_MOST_PAGES * _PAGE} pods match; narrow [kubernetes] selector")


async def _get(client: httpx.AsyncClient, access: Access, path: str, query: dict[str, str]) -> bytes:
    sni = {"sni_hostname": access.server_name} if access.server_name else {}
    request = client.build_request("GET", path, params=query, extensions=sni)
    response = await client.send(request, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _PAGE_BYTES:
                raise UnrecognisedError(SERVICE, f"a page of the list is longer than {_PAGE_BYTES} bytes")
    finally:
        await response.aclose()
    if response.status_code != httpx.codes.OK:
        raise of_http(response.status_code, bytes(body), access.namespace)
    return bytes(body)


def _parse(body: bytes) -> _Page:
    try:
        page = _Page.model_validate(json.loads(body))
    except ValidationError as error:
        # Its own text may quote what a pod's environment holds.
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UnrecognisedError(SERVICE, f"the list of pods is not as known: {field}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise UnrecognisedError(SERVICE, "the answer is no JSON: this is no Kubernetes API server") from None
    if page.kind != "PodList":
        raise UnrecognisedError(SERVICE, f"the answer is a {page.kind[:80]!r} and no PodList")
    return page
