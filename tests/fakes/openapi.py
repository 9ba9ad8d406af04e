"""Holds requests and answers against an OpenAPI description: says in words what is wrong with them.

What of JSON Schema the descriptions in use need, and no more; an unknown property of a request counts as a mistake,
since a misspelt one is ignored by the service in silence.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

type Json = Mapping[str, Any]

GITHUB = Path(__file__).parent / "github_openapi.json"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_DEEP = 12
_NO_CONTENT = 204


@dataclass(frozen=True)
class Endpoint:
    """One verb of one path."""

    name: str
    said: Json


class Description:
    """The endpoints and their schemas."""

    def __init__(self, text: str) -> None:
        described = json.loads(text)
        self._schemas: Json = described["schemas"]
        self._plain: dict[str, dict[str, Any]] = {}
        self._paths = [(path, _pattern(path), verbs) for path, verbs in described["paths"].items()]
        # Literal paths first: `issues/comments` is no issue whose number is "comments".
        self._paths.sort(key=lambda each: each[0].count("{"))

    @property
    def endpoints(self) -> frozenset[tuple[str, str]]:
        """Return verb and path of all that are described."""
        return frozenset((verb.upper(), path) for path, _, verbs in self._paths for verb in verbs)

    def completed(self, schema: str, view: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object with every field that its schema demands: those that nobody reads get a plain value."""
        if schema not in self._plain:
            said = self._schemas[schema]
            self._plain[schema] = {name: self._plain_value(said["properties"][name]) for name in said["required"]}
        return {**self._plain[schema], **view}

    def _plain_value(self, schema: Json) -> Any:
        if "$ref" in schema:
            return self._plain_value(self._schemas[schema["$ref"]])
        if schema.get("nullable"):
            return None
        if "enum" in schema:
            return schema["enum"][0]
        by_format = {"uri": "https://github.example/", "date-time": "2026-01-01T00:00:00Z"}
        plain = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
        return by_format.get(schema.get("format", ""), plain.get(schema.get("type", "object")))

    def find(self, verb: str, path: str) -> Endpoint | None:
        """Return the endpoint that answers, None when none is described."""
        for name, pattern, verbs in self._paths:
            found = pattern.fullmatch(path)
            if found is None or verb.lower() not in verbs:
                continue
            said = verbs[verb.lower()]
            values = {key: int(text) if text.isdecimal() else text for key, text in found.groupdict().items()}
            needs_number = [key for key, schema in said["path"].items() if schema.get("type") == "integer"]
            if all(isinstance(values[key], int) for key in needs_number if key in values):
                return Endpoint(f"{verb} {name}", said)
        return None

    def wrong_with_request(self, endpoint: Endpoint, query: Mapping[str, str], body: Any) -> list[str]:
        """Return what the description does not allow of a request."""
        said = endpoint.said
        wrong = [f"query {name} is not described" for name in query if name not in said["query"]]
        for name, text in query.items():
            if name in said["query"]:
                wrong += self._wrong(
                    said["query"][name], _typed(text, said["query"][name]), f"query {name}", strict=True
                )
        if body is None:
            wrong += ["there is no body"] if said.get("needs_body") else []
        elif said.get("body") is None:
            wrong.append("a body is not described")
        else:
            wrong += self._wrong(said["body"], body, "body", strict=True)
        return [f"{endpoint.name}: {each}" for each in wrong]

    def wrong_with_answer(self, endpoint: Endpoint, status: int, payload: Any) -> list[str]:
        """Return what is unlike the described answer; a refusal that is not described must be an error object."""
        answers = endpoint.said["answers"]
        if str(status) in answers:
            schema = answers[str(status)]
            if schema is None:
                wrong = [] if payload is None or status != _NO_CONTENT else ["there is content"]
            else:
                wrong = list(self._wrong(schema, payload, "answer", strict=False))
        elif status >= 400:
            wrong = list(self._wrong({"$ref": "basic-error"}, payload, "answer", strict=False))
        else:
            wrong = [] if status >= 300 else ["this status is not described"]
        return [f"{endpoint.name}, answered {status}: {each}" for each in wrong]

    def _wrong(self, schema: Json, value: Any, where: str, *, strict: bool, depth: int = 0) -> Iterator[str]:
        if depth > _DEEP or (value is None and (schema.get("nullable") or not schema)):
            return
        if "$ref" in schema:
            yield from self._wrong(self._schemas[schema["$ref"]], value, where, strict=strict, depth=depth + 1)
            return
        for every in schema.get("allOf", ()):
            yield from self._wrong(every, value, where, strict=strict, depth=depth + 1)
        choices = schema.get("anyOf") or schema.get("oneOf") or ()
        tried = [list(self._wrong(each, value, where, strict=strict, depth=depth + 1)) for each in choices]
        if choices and all(tried):
            yield min(tried, key=len)[0]
            return
        kind = schema.get("type")
        if kind is not None and not _is_a(value, kind):
            yield f"{where} is {type(value).__name__} and not {kind}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where} is {value!r} and none of {schema['enum']}"
        match value:
            case str():
                yield from _wrong_text(schema, value, where)
            case list():
                yield from self._wrong_list(schema, value, where, strict=strict, depth=depth)
            case dict() if not choices or "properties" in schema:
                yield from self._wrong_object(schema, value, where, strict=strict, depth=depth)

    def _wrong_list(self, schema: Json, value: list[Any], where: str, *, strict: bool, depth: int) -> Iterator[str]:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{where} has {len(value)} items"
        for number, each in enumerate(value):
            yield from self._wrong(schema.get("items", {}), each, f"{where}[{number}]", strict=strict, depth=depth + 1)

    def _wrong_object(
        self, schema: Json, value: dict[str, Any], where: str, *, strict: bool, depth: int
    ) -> Iterator[str]:
        known = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{where}.{name} is missing"
        further = schema.get("additionalProperties", not strict or not known)
        for name, each in value.items():
            if name in known:
                yield from self._wrong(known[name], each, f"{where}.{name}", strict=strict, depth=depth + 1)
            elif further is False:
                yield f"{where}.{name} is not described"
            elif isinstance(further, dict):
                yield from self._wrong(further, each, f"{where}.{name}", strict=strict, depth=depth + 1)


@cache
def github_description() -> Description:
    return Description(GITHUB.read_text(encoding="utf-8"))


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)
    # A reference is a path of its own: tags/NAME.
    named = [
        f"(?P<{part}>{'.+' if part == 'ref' else '[^/]+'})" if at % 2 else re.escape(part)
        for at, part in enumerate(parts)
    ]
    return re.compile("".join(named))


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _typed(text: str, schema: Json) -> Any:
    match schema.get("type"):
        case "integer" if text.isdecimal():
            return int(text)
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case _:
            return text


def _wrong_text(schema: Json, value: str, where: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{where} has {len(value)} characters"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where} is {value!r} and not like {schema['pattern']}"
    if schema.get("format") == "date-time":
        try:
            is_zoned = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            is_zoned = False
        if not is_zoned:
            yield f"{where} is {value!r} and no date-time"
    if schema.get("format") == "uri" and ":" not in value:
        yield f"{where} is {value!r} and no URI"
