"""IAM tokens, resource groups, global search and tagging."""

import re
import time
from collections.abc import Mapping
from typing import Any

from lab.cloud import ACCOUNT, token
from lab.cloud.api import Answer, Cloud, Request, need, now, refuse, route
from lab.cloud.store import Resource, shown

SECONDS_OF_A_TOKEN = 3600


@route("POST", "/identity/token")
def make_token(_: Cloud, request: Request) -> Answer:
    """Exchange an API key, any but an empty one, for a token."""
    form = request.body if isinstance(request.body, Mapping) else {}
    if "apikey" in form and not form["apikey"]:
        raise_iam("BXNIM0415E", "Provided API key could not be found.")
    body = {
        "access_token": token(),
        "refresh_token": "not_supported",
        "token_type": "Bearer",
        "expires_in": SECONDS_OF_A_TOKEN,
        "expiration": int(time.time()) + SECONDS_OF_A_TOKEN,
        "scope": "ibm openid",
    }
    return Answer(200, body)


def raise_iam(code: str, message: str) -> None:
    """Answer as IAM does to a key that it does not know."""
    refuse(400, code, message)


def seed(cloud: Cloud) -> None:
    """Give a new account what every account has."""
    if not cloud.store.all("resource_groups"):
        cloud.store.add("resource_groups", _group(cloud, "Default", default=True))


def _group(cloud: Cloud, name: str, *, default: bool) -> Resource:
    identity = cloud.store.new_id("rg").removeprefix("rg-").replace("-", "")
    return {
        "_scope": "",
        "id": identity,
        "name": name,
        "crn": f"crn:v1:bluemix:public:resource-controller::a/{ACCOUNT}::resource-group:{identity}",
        "account_id": ACCOUNT,
        "state": "ACTIVE",
        "default": default,
        "quota_id": "simulated",
        "quota_url": "/v2/quota_definitions/simulated",
        "resource_linkages": [],
        "payment_methods_url": f"/v2/resource_groups/{identity}/payment_methods",
        "teams_url": f"/v2/resource_groups/{identity}/teams",
        "created_at": now(),
        "updated_at": now(),
    }


@route("GET", "/v2/resource_groups")
def list_groups(cloud: Cloud, request: Request) -> Answer:
    """List resource groups, by name or the default one."""
    groups = cloud.store.all("resource_groups")
    if "name" in request.query:
        groups = [group for group in groups if group["name"] == request.query["name"]]
    if request.query.get("default") == "true":
        groups = [group for group in groups if group["default"]]
    return Answer(200, {"resources": [shown(group) for group in groups]})


@route("POST", "/v2/resource_groups")
def create_group(cloud: Cloud, request: Request) -> Answer:
    """Make a resource group."""
    name = str((request.body or {}).get("name") or "")
    if not name:
        refuse(400, "invalid_value", "name is required", "name")
    if cloud.store.named("resource_groups", "", name):
        refuse(409, "conflict", f"resource group {name} exists", "name")
    group = cloud.store.add("resource_groups", _group(cloud, name, default=False))
    return Answer(201, {"id": group["id"], "crn": group["crn"]})


@route("GET", "/v2/resource_groups/{id}")
def get_group(cloud: Cloud, request: Request) -> Answer:
    """Read a resource group."""
    return Answer(200, shown(need(cloud, "resource_groups", request.params["id"])))


@route("PATCH", "/v2/resource_groups/{id}")
def patch_group(cloud: Cloud, request: Request) -> Answer:
    """Rename a resource group."""
    group = need(cloud, "resource_groups", request.params["id"])
    cloud.store.rename("resource_groups", group, str((request.body or {}).get("name")))
    return Answer(200, shown(group))


@route("DELETE", "/v2/resource_groups/{id}")
def delete_group(cloud: Cloud, request: Request) -> Answer:
    """Delete a resource group other than the default one."""
    group = need(cloud, "resource_groups", request.params["id"])
    if group["default"]:
        refuse(403, "forbidden", "the default resource group cannot be deleted")
    cloud.store.remove("resource_groups", group)
    return Answer(204)


# --- tags


def _tags(cloud: Cloud, crn: str) -> Resource:
    found = cloud.store.find("tags", crn)
    return found or {"id": crn, "crn": crn, "tags": [], "access_tags": [], "service_tags": []}


@route("POST", "/v3/resources/search")
def search(cloud: Cloud, request: Request) -> Answer:
    """Find the tags of a resource by its CRN.

    An item always has all three kinds of tags: the provider reads them without looking.
    """
    query = str((request.body or {}).get("query", ""))
    match = re.search(r'crn:\s*\\?"([^"\\]+)\\?"', query)
    items = [shown(_tags(cloud, match.group(1)))] if match else []
    return Answer(200, {"limit": int(request.query.get("limit", "10")), "items": items})


def _key(request: Request) -> str:
    kind = request.query.get("tag_type", "user")
    return {"user": "tags", "access": "access_tags", "service": "service_tags"}.get(kind, "tags")


def _change(cloud: Cloud, request: Request, *, attach: bool) -> Answer:
    body: Mapping[str, Any] = request.body or {}
    names = [*(body.get("tag_names") or []), *([body["tag_name"]] if "tag_name" in body else [])]
    key = _key(request)
    results = []
    for resource in body.get("resources") or []:
        crn = str(resource["resource_id"])
        tags = _tags(cloud, crn)
        kept = [tag for tag in tags[key] if tag not in names]
        tags[key] = sorted([*kept, *names]) if attach else kept
        cloud.store.add("tags", tags)
        results.append({"resource_id": crn, "is_error": False})
    return Answer(200, {"results": results})


@route("POST", "/v3/tags/attach")
def attach(cloud: Cloud, request: Request) -> Answer:
    """Attach tags to resources."""
    return _change(cloud, request, attach=True)


@route("POST", "/v3/tags/detach")
def detach(cloud: Cloud, request: Request) -> Answer:
    """Detach tags from resources."""
    return _change(cloud, request, attach=False)


@route("GET", "/v3/tags")
def list_tags(cloud: Cloud, request: Request) -> Answer:
    """List tags, all of them or those attached to one resource."""
    key = _key(request)
    wanted = request.query.get("attached_to")
    names = {
        tag
        for tags in cloud.store.all("tags")
        if wanted in {None, tags["crn"]}
        for tag in tags[key]
    }
    items = [{"name": name} for name in sorted(names)]
    return Answer(200, {"total_count": len(items), "offset": 0, "limit": 100, "items": items})


@route("DELETE", "/v3/tags/{name}")
def delete_tag(cloud: Cloud, request: Request) -> Answer:
    """Delete a tag, which the provider asks for when nothing has it any more."""
    key = _key(request)
    name = request.params["name"]
    if any(name in tags[key] for tags in cloud.store.all("tags")):
        refuse(400, "tag_in_use", f"tag {name} is attached")
    return Answer(200, {"results": [{"provider": "ghost", "is_error": False}]})
