"""Requests, answers, errors, and the helpers that every kind of resource shares."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from lab.cloud import ACCOUNT
from lab.cloud.store import Resource, Store, shown

NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MAX_NAME = 63


class ApiError(Exception):
    """An error as the API answers it."""

    def __init__(self, status: int, code: str, message: str, target: str | None = None) -> None:
        """Take status, the API's error code, a sentence, and the field that is wrong."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.target = target

    def body(self) -> dict[str, Any]:
        """The body of the answer."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target:
            error["target"] = {"name": self.target, "type": "field"}
        return {"errors": [error], "trace": "simulated"}


def refuse(status: int, code: str, message: str, target: str | None = None) -> NoReturn:
    """Answer with an error."""
    raise ApiError(status, code, message, target)


@dataclass(slots=True)
class Request:
    """A request, its path parameters included."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """An answer; a body of None is an empty one."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Quotas = Mapping[str, int]
DEFAULT_QUOTAS: Quotas = {"vpcs": 10, "bare_metal_servers": 25, "keys": 200, "instances": 200}
"""What the account may hold; VPCs and servers as IBM gives a new account
(ibm-cloud-docs/vpc, quotas.md)."""


@dataclass(slots=True)
class Cloud:
    """What a handler works with."""

    store: Store
    url: str
    quotas: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_QUOTAS))
    polls: int = 1
    failing: list[str] = field(default_factory=list)
    """Kinds whose next resource ends as ``failed``."""

    def href(self, path: str) -> str:
        """Address of a resource."""
        return f"{self.url}/v1{path}"

    def crn(self, kind: str, identity: str, zone: str = "us-east") -> str:
        """Cloud resource name."""
        return f"crn:v1:bluemix:public:is:{zone}:a/{ACCOUNT}::{kind}:{identity}"


Handler = Callable[[Cloud, Request], Answer]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler; ``{name}`` in the path is a parameter."""
    pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

    def register(handler: Handler) -> Handler:
        ROUTES.append((method, pattern, handler))
        return handler

    return register


def dispatch(cloud: Cloud, request: Request) -> Answer:
    """Find the handler of a request and call it, one request at a time."""
    known = False
    for method, pattern, handler in ROUTES:
        match = pattern.fullmatch(request.path)
        if match:
            known = True
            if method == request.method:
                request.params = match.groupdict()
                with cloud.store.lock:
                    return _whole(cloud, request, handler)
    if known:
        refuse(405, "method_not_allowed", f"{request.method} is not simulated here")
    refuse(404, "not_found", f"{request.path} is not simulated")


def _whole(cloud: Cloud, request: Request, handler: Handler) -> Answer:
    """Call a handler; a request that is refused leaves nothing behind."""
    try:
        answer = handler(cloud, request)
    except ApiError:
        cloud.store.undo()
        raise
    cloud.store.keep()
    return answer


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def need(cloud: Cloud, kind: str, identity: str) -> Resource:
    """A resource that must exist, for its own path."""
    found = cloud.store.find(kind, identity)
    if found is None:
        refuse(404, "not_found", f"{_noun(kind)} with id {identity} was not found")
    return found


def given(cloud: Cloud, kind: str, identity: Any, target: str) -> Resource:
    """A resource that a body names by id, name, CRN or address."""
    value = identity if isinstance(identity, Mapping) else {}
    key = value.get("id") or str(value.get("crn") or value.get("href") or "").split(":")[-1]
    found = cloud.store.find(kind, str(key).rsplit("/", 1)[-1])
    if found is None:
        refuse(400, "bad_reference", f"{_noun(kind)} {key or '?'} does not exist", target)
    return found


def _noun(kind: str) -> str:
    return kind.removesuffix("s").replace("_", " ")


def required(body: Any, key: str) -> Any:
    """A field of a body that must be there."""
    if not isinstance(body, Mapping) or body.get(key) is None:
        refuse(400, "missing_field", f"{key} is required", key)
    return body[key]


def name_of(cloud: Cloud, kind: str, scope: str, body: Mapping[str, Any], default: str) -> str:
    """The name of a new resource: well-formed, and unique in its scope."""
    name = body.get("name") or default
    check_name(cloud, kind, scope, name)
    return str(name)


def check_name(cloud: Cloud, kind: str, scope: str, name: Any) -> None:
    """Refuse a name that is malformed or taken."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > MAX_NAME:
        refuse(400, "invalid_value", f"name {name!r} does not match the pattern of names", "name")
    if cloud.store.named(kind, scope, name):
        message = f"Provided Name ({name}) is not unique"
        refuse(409, "validation_unique_failed", message, "name")


def quota(cloud: Cloud, kind: str) -> None:
    """Refuse one more resource than the account may hold."""
    limit = cloud.quotas.get(kind)
    if limit is not None and len(cloud.store.all(kind)) >= limit:
        refuse(400, "over_quota", f"the account holds its {limit} {kind.replace('_', ' ')}")


def reference(resource: Resource, *more: str) -> dict[str, Any]:
    """A resource as others refer to it."""
    keys = ("id", "name", "crn", "href", "resource_type", *more)
    return {key: resource[key] for key in keys if key in resource}


def zone_reference(cloud: Cloud, name: str) -> dict[str, Any]:
    """A zone as others refer to it."""
    region = name.rsplit("-", 1)[0]
    return {"name": name, "href": cloud.href(f"/regions/{region}/zones/{name}")}


def group_reference(cloud: Cloud, body: Mapping[str, Any]) -> dict[str, Any]:
    """The resource group of a new resource; the account's default unless one is named."""
    wanted = (body.get("resource_group") or {}).get("id")
    groups = cloud.store.all("resource_groups")
    found = next(
        (group for group in groups if (group["id"] == wanted if wanted else group["default"])),
        None,
    )
    if found is None:
        message = f"resource group {wanted} does not exist"
        refuse(400, "bad_reference", message, "resource_group.id")
    href = f"{cloud.url}/v2/resource_groups/{found['id']}"
    return {"id": found["id"], "name": found["name"], "href": href}


def page(cloud: Cloud, request: Request, key: str, resources: list[Resource]) -> Answer:
    """One page of a collection, filtered as the query asks."""
    query = request.query
    if "name" in query:
        resources = [r for r in resources if r.get("name") == query["name"]]
    if "resource_group.id" in query:
        wanted = query["resource_group.id"]
        resources = [r for r in resources if r.get("resource_group", {}).get("id") == wanted]
    try:
        limit = int(query.get("limit", "50"))
    except ValueError:
        limit = 0
    if not 1 <= limit <= 100:
        refuse(400, "invalid_value", "limit must be between 1 and 100", "limit")
    start = query.get("start")
    offset = 0
    if start:
        places = [index for index, r in enumerate(resources) if _marker(r) == start]
        if not places:
            refuse(400, "invalid_value", "start is not a token of this collection", "start")
        offset = places[0]
    shown_page = resources[offset : offset + limit]
    base = f"{cloud.url}{request.path}"
    body: dict[str, Any] = {
        "first": {"href": f"{base}?limit={limit}"},
        "limit": limit,
        "total_count": len(resources),
        key: [shown(r) for r in shown_page],
    }
    if offset + limit < len(resources):
        following = _marker(resources[offset + limit])
        body["next"] = {"href": f"{base}?limit={limit}&start={following}"}
    return Answer(200, body)


def _marker(resource: Resource) -> str:
    return hashlib.sha256(str(resource["id"]).encode()).hexdigest()[:32]


def begin(cloud: Cloud, kind: str, resource: Resource, key: str, first: str, *then: str) -> None:
    """Let a resource's state advance: one step after each ``polls`` readings of it."""
    states = [*then]
    if kind in cloud.failing:
        cloud.failing.remove(kind)
        states = ["failed"]
    resource[key] = first
    resource["_states"] = {"key": key, "left": states, "polls": cloud.polls}
    if cloud.polls == 0:
        resource[key] = states[-1]
        resource.pop("_states")


def advance(cloud: Cloud, resource: Resource) -> None:
    """Count a reading of a resource, and take its state on when it is time."""
    states = resource.get("_states")
    if not states:
        return
    states["polls"] -= 1
    if states["polls"] <= 0:
        resource[states["key"]] = states["left"].pop(0)
        states["polls"] = cloud.polls
        if not states["left"]:
            resource.pop("_states")
    cloud.store.touch()


def read(cloud: Cloud, kind: str, identity: str) -> Answer:
    """One resource; reading it is what makes its state advance."""
    resource = need(cloud, kind, identity)
    answer = Answer(200, shown(resource))
    if "_states" in resource:
        advance(cloud, resource)
        answer = Answer(200, shown(resource))
    return answer


def patch(
    cloud: Cloud, kind: str, request: Request, resource: Resource, allowed: tuple[str, ...]
) -> Answer:
    """Merge what a patch may change into a resource."""
    body = request.body if isinstance(request.body, Mapping) else {}
    name = body.get("name")
    if name is not None and name != resource.get("name"):
        check_name(cloud, kind, resource.get("_scope", ""), name)
        cloud.store.rename(kind, resource, name)
    for key in allowed:
        if key in body:
            resource[key] = body[key]
    cloud.store.touch()
    return Answer(200, shown(resource))
