"""IBM's own client beside Pulumi: finds resources by name, and sees what the provider cannot."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from vela.operate.errors import Failure

if TYPE_CHECKING:
    from ibm_vpc import VpcV1

Resource = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where resources of a Pulumi type are listed, and how they are told apart.

    Attributes:
        path: Collection below the VPC API's base; ``{parent}`` is filled in.
        key: Key of the list in the answer.
        parent: Input property that holds the parent's id, for nested collections.
        separator: Between parent's and own id in the provider's resource id.
    """

    path: str
    key: str
    parent: str | None = None
    separator: str = "/"


PLACES: Mapping[str, Place] = {
    "ibm:index/isVpc:IsVpc": Place("/vpcs", "vpcs"),
    "ibm:index/isVpcAddressPrefix:IsVpcAddressPrefix": Place(
        "/vpcs/{parent}/address_prefixes", "address_prefixes", "vpc"
    ),
    "ibm:index/isSubnet:IsSubnet": Place("/subnets", "subnets"),
    "ibm:index/isSubnetReservedIp:IsSubnetReservedIp": Place(
        "/subnets/{parent}/reserved_ips", "reserved_ips", "subnet"
    ),
    "ibm:index/isPublicGateway:IsPublicGateway": Place("/public_gateways", "public_gateways"),
    "ibm:index/isFloatingIp:IsFloatingIp": Place("/floating_ips", "floating_ips"),
    "ibm:index/isNetworkAcl:IsNetworkAcl": Place("/network_acls", "network_acls"),
    "ibm:index/isSecurityGroup:IsSecurityGroup": Place("/security_groups", "security_groups"),
    "ibm:index/isSecurityGroupRule:IsSecurityGroupRule": Place(
        "/security_groups/{parent}/rules", "rules", "group", "."
    ),
    "ibm:index/isSshKey:IsSshKey": Place("/keys", "keys"),
    "ibm:index/isImage:IsImage": Place("/images?visibility=private", "images"),
    "ibm:index/isVirtualNetworkInterface:IsVirtualNetworkInterface": Place(
        "/virtual_network_interfaces", "virtual_network_interfaces"
    ),
    "ibm:index/isBareMetalServer:IsBareMetalServer": Place(
        "/bare_metal_servers", "bare_metal_servers"
    ),
    "ibm:index/isInstance:IsInstance": Place("/instances", "instances"),
    "ibm:index/isPlacementGroup:IsPlacementGroup": Place("/placement_groups", "placement_groups"),
    "ibm:index/isClusterNetwork:IsClusterNetwork": Place("/cluster_networks", "cluster_networks"),
    "ibm:index/isClusterNetworkSubnet:IsClusterNetworkSubnet": Place(
        "/cluster_networks/{parent}/subnets", "subnets", "clusterNetworkId"
    ),
    "ibm:index/isClusterNetworkInterface:IsClusterNetworkInterface": Place(
        "/cluster_networks/{parent}/interfaces", "interfaces", "clusterNetworkId"
    ),
}


class Cloud:
    """The VPC API of one region, through IBM's client."""

    def __init__(self, region: str, variables: Mapping[str, str]) -> None:
        """Make the client; nothing is asked yet.

        Args:
            region: Region of the environment.
            variables: The simulator's variables, or empty for the real cloud, whose API key is
                taken from ``IC_API_KEY`` or ``IBMCLOUD_API_KEY`` as the provider does.

        Raises:
            Failure: There is no API key.
        """
        self._service = _client(region, variables)
        self._list = cache(self._list_uncached)

    def find(self, kind: str, inputs: Mapping[str, Any]) -> str | None:
        """Id, as the provider writes it, of the resource with the name of these inputs.

        Args:
            kind: Pulumi's type token.
            inputs: Input properties in the provider's spelling.
        """
        place = PLACES.get(kind)
        if place is None:
            return None
        parent = inputs.get(place.parent) if place.parent else ""
        if not isinstance(parent, str) or (place.parent and not known(parent)):
            return None
        found = next((r for r in self._list(place, parent) if same(kind, inputs, r)), None)
        if found is None:
            return None
        return f"{parent}{place.separator}{found['id']}" if place.parent else str(found["id"])

    def rules(self, group: str) -> list[Resource]:
        """Rules of a security group."""
        return self._list(PLACES["ibm:index/isSecurityGroupRule:IsSecurityGroupRule"], group)

    def mend_rule(self, group: str, rule: str, inputs: Mapping[str, Any]) -> None:
        """Make a security rule say what the program says; its protocol cannot be changed.

        Args:
            group: Id of its group.
            rule: Its id.
            inputs: Input properties in the provider's spelling.
        """
        direction, _, low, high, remote = rule_inputs(inputs)
        where = "cidr_block" if "/" in str(remote) else "address"
        patch = {"direction": direction, "remote": {where: remote}}
        if low is not None:
            patch |= {"port_min": low, "port_max": high}
        self._service.update_security_group_rule(group, rule, patch)
        self._list.cache_clear()

    def servers(self, kind: str) -> Mapping[str, Resource]:
        """Servers of a Pulumi type by name."""
        return {str(server["name"]): server for server in self._list(PLACES[kind], "")}

    def _list_uncached(self, place: Place, parent: str) -> list[Resource]:
        return list(self._pages(place.path.format(parent=parent), place.key))

    def _pages(self, path: str, key: str) -> Iterator[Resource]:
        bare, _, query = path.partition("?")
        fixed = {name: values[0] for name, values in parse_qs(query).items()}
        start: str | None = None
        while True:
            more = {"limit": "100", **({"start": start} if start else {})}
            answer = self._get(bare, {**fixed, **more})
            yield from answer.get(key, [])
            following = (answer.get("next") or {}).get("href")
            start = parse_qs(urlsplit(following).query)["start"][0] if following else None
            if start is None:
                return

    def _get(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        from ibm_cloud_sdk_core import ApiException  # noqa: PLC0415 - loaded with the client

        request = self._service.prepare_request(
            method="GET",
            url=path,
            headers={"Accept": "application/json"},
            params={
                "version": self._service.version,
                "generation": self._service.generation,
                **parameters,
            },
        )
        try:
            answer = self._service.send(request, timeout=60).get_result()
        except ApiException as error:
            if error.status_code == 404:
                return {}
            message = f"IBM Cloud answered {error.status_code} to GET {path}: {error.message}"
            raise Failure(message) from None
        except OSError as error:
            message = f"IBM Cloud does not answer GET {path}"
            raise Failure(message, "check the network and the endpoint", str(error)) from None
        return dict(answer)


def known(value: str) -> bool:
    """Whether a value of a preview is decided already; the engine marks others by an id."""
    return value != "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def same(kind: str, inputs: Mapping[str, Any], resource: Resource) -> bool:
    """Whether a resource of the cloud is the one that these inputs describe."""
    if kind == "ibm:index/isSecurityGroupRule:IsSecurityGroupRule":
        return rule_inputs(inputs) == rule_found(resource)
    name = inputs.get("name")
    return name is not None and name == resource.get("name")


def rule_inputs(inputs: Mapping[str, Any]) -> tuple[object, ...]:
    """A security rule of the program, as something to compare."""
    return (
        inputs.get("direction"),
        inputs.get("protocol"),
        _port(inputs.get("portMin")),
        _port(inputs.get("portMax")),
        inputs.get("remote") or "0.0.0.0/0",
    )


def rule_found(rule: Resource) -> tuple[object, ...]:
    """A security rule of the cloud, as something to compare."""
    remote = rule.get("remote") or {}
    return (
        rule.get("direction"),
        rule.get("protocol"),
        _port(rule.get("port_min")),
        _port(rule.get("port_max")),
        remote.get("cidr_block") or remote.get("address") or remote.get("id") or "0.0.0.0/0",
    )


def _port(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _client(region: str, variables: Mapping[str, str]) -> "VpcV1":
    from ibm_cloud_sdk_core.authenticators import (  # noqa: PLC0415 - most of a second
        IAMAuthenticator,
        NoAuthAuthenticator,
    )
    from ibm_vpc import VpcV1  # noqa: PLC0415

    simulated = variables.get("VPC_URL")
    if simulated:
        service = VpcV1(authenticator=NoAuthAuthenticator())
        service.set_service_url(simulated)
        return service
    key = os.environ.get("IC_API_KEY") or os.environ.get("IBMCLOUD_API_KEY")
    if not key:
        message = "there is no API key for IBM Cloud"
        raise Failure(message, "set IC_API_KEY; cloud.ibm.com, Manage, Access (IAM), API keys")
    service = VpcV1(authenticator=IAMAuthenticator(key))
    service.set_service_url(f"https://{region}.iaas.cloud.ibm.com/v1")
    return service
