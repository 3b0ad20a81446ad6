"""Every response of the simulator passes IBM's own models, which are strict."""

from collections.abc import Callable
from typing import Any

import ibm_vpc.vpc_v1 as models
import pytest
from ibm_vpc import VpcV1

from tests.lab.conftest import Account

Get = Callable[[VpcV1, dict[str, Any]], Any]

SINGLE: list[tuple[str, Get]] = [
    ("VPC", lambda c, m: c.get_vpc(m["vpc"]["id"])),
    ("AddressPrefix", lambda c, m: c.get_vpc_address_prefix(m["vpc"]["id"], m["prefix"]["id"])),
    ("RoutingTable", lambda c, m: c.get_vpc_routing_table(
        m["vpc"]["id"], m["vpc"]["default_routing_table"]["id"])),
    ("DefaultNetworkACL", lambda c, m: c.get_vpc_default_network_acl(m["vpc"]["id"])),
    ("DefaultSecurityGroup", lambda c, m: c.get_vpc_default_security_group(m["vpc"]["id"])),
    ("Subnet", lambda c, m: c.get_subnet(m["subnet"]["id"])),
    ("PublicGateway", lambda c, m: c.get_public_gateway(m["gateway"]["id"])),
    ("PublicGateway", lambda c, m: c.get_subnet_public_gateway(m["subnet"]["id"])),
    ("NetworkACL", lambda c, m: c.get_network_acl(m["acl"]["id"])),
    ("NetworkACL", lambda c, m: c.get_network_acl(m["vpc"]["default_network_acl"]["id"])),
    ("SecurityGroup", lambda c, m: c.get_security_group(m["group"]["id"])),
    ("SecurityGroupRuleSecurityGroupRuleProtocolTCPUDP", lambda c, m: c.get_security_group_rule(
        m["group"]["id"], m["rule"]["id"])),
    ("Key", lambda c, m: c.get_key(m["key"]["id"])),
    ("Image", lambda c, m: c.get_image(m["image"]["id"])),
    ("VirtualNetworkInterface", lambda c, m: c.get_virtual_network_interface(
        m["interface"]["id"])),
    ("ReservedIP", lambda c, m: c.get_subnet_reserved_ip(
        m["subnet"]["id"], m["interface"]["primary_ip"]["id"])),
    ("FloatingIP", lambda c, m: c.get_floating_ip(m["floating"]["id"])),
    ("BareMetalServer", lambda c, m: c.get_bare_metal_server(m["metal"]["id"])),
    ("BareMetalServerInitialization", lambda c, m: c.get_bare_metal_server_initialization(
        m["metal"]["id"])),
    ("BareMetalServerDisk", lambda c, m: c.get_bare_metal_server_disk(
        m["metal"]["id"], m["metal"]["disks"][0]["id"])),
    ("BareMetalServerNetworkAttachmentByPCI",
     lambda c, m: c.get_bare_metal_server_network_attachment(
         m["metal"]["id"], m["metal"]["network_attachments"][0]["id"])),
    ("BareMetalServerNetworkInterfaceByPCI", lambda c, m: c.get_bare_metal_server_network_interface(
        m["metal"]["id"], m["metal"]["network_interfaces"][0]["id"])),
    ("BareMetalServerProfile", lambda c, m: c.get_bare_metal_server_profile("bx2-metal-96x384")),
    ("Instance", lambda c, m: c.get_instance(m["instance"]["id"])),
    ("InstanceInitialization", lambda c, m: c.get_instance_initialization(m["instance"]["id"])),
    ("InstanceNetworkAttachment", lambda c, m: c.get_instance_network_attachment(
        m["instance"]["id"], m["instance"]["network_attachments"][0]["id"])),
    ("InstanceClusterNetworkAttachment", lambda c, m: c.get_instance_cluster_network_attachment(
        m["instance"]["id"], m["instance"]["cluster_network_attachments"][0]["id"])),
    ("VolumeAttachment", lambda c, m: c.get_instance_volume_attachment(
        m["instance"]["id"], m["instance"]["boot_volume_attachment"]["id"])),
    ("Volume", lambda c, m: c.get_volume(
        m["instance"]["boot_volume_attachment"]["volume"]["id"])),
    ("InstanceProfile", lambda c, m: c.get_instance_profile("gx3d-160x1792x8h100")),
    ("InstanceProfile", lambda c, m: c.get_instance_profile("bx2-2x8")),
    ("PlacementGroup", lambda c, m: c.get_placement_group(m["placement"]["id"])),
    ("ClusterNetwork", lambda c, m: c.get_cluster_network(m["cluster"]["id"])),
    ("ClusterNetworkSubnet", lambda c, m: c.get_cluster_network_subnet(
        m["cluster"]["id"], m["rail"]["id"])),
    ("ClusterNetworkSubnetReservedIP", lambda c, m: c.get_cluster_network_subnet_reserved_ip(
        m["cluster"]["id"], m["rail"]["id"], m["rail_interface"]["primary_ip"]["id"])),
    ("ClusterNetworkInterface", lambda c, m: c.get_cluster_network_interface(
        m["cluster"]["id"], m["rail_interface"]["id"])),
    ("ClusterNetworkProfile", lambda c, m: c.get_cluster_network_profile("hopper-1")),
    ("OperatingSystem", lambda c, m: c.get_operating_system("debian-12-amd64")),
    ("Region", lambda c, m: c.get_region("us-east")),
    ("Zone", lambda c, m: c.get_region_zone("us-east", "us-east-3")),
]  # fmt: skip

LISTS: list[tuple[str, Get]] = [
    ("VPCCollection", lambda c, m: c.list_vpcs()),
    ("AddressPrefixCollection", lambda c, m: c.list_vpc_address_prefixes(m["vpc"]["id"])),
    ("SubnetCollection", lambda c, m: c.list_subnets()),
    ("ReservedIPCollection", lambda c, m: c.list_subnet_reserved_ips(m["subnet"]["id"])),
    ("PublicGatewayCollection", lambda c, m: c.list_public_gateways()),
    ("NetworkACLCollection", lambda c, m: c.list_network_acls()),
    ("SecurityGroupCollection", lambda c, m: c.list_security_groups()),
    ("SecurityGroupTargetCollection", lambda c, m: c.list_security_group_targets(
        m["group"]["id"])),
    ("KeyCollection", lambda c, m: c.list_keys()),
    ("ImageCollection", lambda c, m: c.list_images()),
    ("VirtualNetworkInterfaceCollection", lambda c, m: c.list_virtual_network_interfaces()),
    ("FloatingIPCollection", lambda c, m: c.list_floating_ips()),
    ("BareMetalServerCollection", lambda c, m: c.list_bare_metal_servers()),
    ("BareMetalServerProfileCollection", lambda c, m: c.list_bare_metal_server_profiles()),
    ("InstanceCollection", lambda c, m: c.list_instances()),
    ("InstanceProfileCollection", lambda c, m: c.list_instance_profiles()),
    ("PlacementGroupCollection", lambda c, m: c.list_placement_groups()),
    ("ClusterNetworkCollection", lambda c, m: c.list_cluster_networks()),
    ("ClusterNetworkSubnetCollection", lambda c, m: c.list_cluster_network_subnets(
        m["cluster"]["id"])),
    ("ClusterNetworkInterfaceCollection", lambda c, m: c.list_cluster_network_interfaces(
        m["cluster"]["id"])),
    ("OperatingSystemCollection", lambda c, m: c.list_operating_systems()),
    ("RegionCollection", lambda c, m: c.list_regions()),
    ("ZoneCollection", lambda c, m: c.list_region_zones("us-east")),
]  # fmt: skip


@pytest.fixture
def made(account: Account) -> dict[str, Any]:
    return account.make()


def test_single_resources(account: Account, made: dict[str, Any]) -> None:
    refused = {}
    for name, get in SINGLE:
        result = get(account.vpc, made).get_result()
        try:
            getattr(models, name).from_dict(result)
        except ValueError as error:
            refused[name] = str(error)
    assert refused == {}


def test_collections(account: Account, made: dict[str, Any]) -> None:
    refused = {}
    for name, get in LISTS:
        result = get(account.vpc, made).get_result()
        try:
            getattr(models, name).from_dict(result)
        except ValueError as error:
            refused[name] = str(error)
    assert refused == {}


def test_what_a_create_answers(account: Account, made: dict[str, Any]) -> None:
    kinds = {
        "vpc": "VPC", "prefix": "AddressPrefix", "subnet": "Subnet", "gateway": "PublicGateway",
        "group": "SecurityGroup", "acl": "NetworkACL", "key": "Key", "image": "Image",
        "interface": "VirtualNetworkInterface", "metal": "BareMetalServer",
        "instance": "Instance", "cluster": "ClusterNetwork", "rail": "ClusterNetworkSubnet",
        "rail_interface": "ClusterNetworkInterface", "placement": "PlacementGroup",
        "floating": "FloatingIP",
    }  # fmt: skip
    for key, name in kinds.items():
        getattr(models, name).from_dict(made[key])
