"""Where each address comes from.

Every rack has a part of fixed size in every network, and every host, leaf, link and spine a
fixed place in its part. An address is a function of the rack's and the node's number alone,
so nothing moves when racks or hosts are added or removed elsewhere.
"""

from ipaddress import IPv4Address, IPv4Interface, IPv4Network

RESERVED_BY_IBM = 4
"""First addresses of a VPC subnet that IBM keeps, besides the last one (ibm-cloud-docs/vpc,
"about-networking-for-vpc": network, gateway, and two more)."""

BASTION_OFFSET = 5
SPINES_OFFSET = 8
MAX_SPINES = 16
MAX_LEAFS = 8
MAX_UPLINKS = 4
MAX_SLOTS = 64
MAX_HOST_PORTS = 16
LOOPBACKS_PER_RACK = 32
UPLINKS_PER_RACK = MAX_LEAFS * MAX_SPINES * MAX_UPLINKS
HOST_LINKS_PER_RACK = MAX_SLOTS * MAX_HOST_PORTS
CLUSTER_SUBNET_PREFIX = 18
"""Prefix length of a cluster network's subnets: 255 racks of 64 addresses."""

INFRASTRUCTURE_ADDRESSES = 32
"""Addresses at the start of a subnet for IBM, bastion and spines, before the first rack's
part. With parts of 16 addresses they take two parts' room."""


def first_rack_offset(per_rack: int) -> int:
    """Offset of rack 1's part in a subnet, a multiple of the part's size."""
    return -(-INFRASTRUCTURE_ADDRESSES // per_rack) * per_rack


def racks_that_fit(network: IPv4Network, per_rack: int) -> int:
    """Racks whose parts fit a subnet of the VPC."""
    return max(0, (network.num_addresses - first_rack_offset(per_rack)) // per_rack)


def hosts_that_fit(per_rack: int, leafs: int) -> int:
    """Hosts of a rack that fit its part: its first address and its last stay free."""
    return per_rack - 2 - leafs


def host_address(network: IPv4Network, per_rack: int, rack: int, slot: int) -> IPv4Address:
    """Address of a host in a subnet: its slot, counted from the start of the rack's part."""
    return network[first_rack_offset(per_rack) + (rack - 1) * per_rack + slot]


def leaf_address(network: IPv4Network, per_rack: int, rack: int, index: int) -> IPv4Address:
    """Management address of a leaf, counted from the end of the rack's part."""
    return network[first_rack_offset(per_rack) + rack * per_rack - 1 - index]


def spine_address(network: IPv4Network, index: int) -> IPv4Address:
    """Management address of a spine."""
    return network[SPINES_OFFSET + index]


def bastion_address(network: IPv4Network) -> IPv4Address:
    """Address of the bastion in the management subnet."""
    return network[BASTION_OFFSET]


def leaf_loopback(network: IPv4Network, rack: int, index: int) -> IPv4Address:
    """Loopback of a leaf; part 0 of the network belongs to the spines."""
    return network[rack * LOOPBACKS_PER_RACK + index]


def spine_loopback(network: IPv4Network, index: int) -> IPv4Address:
    """Loopback of a spine."""
    return network[index]


def uplink(
    network: IPv4Network, rack: int, leaf: int, spine: int, cable: int
) -> tuple[IPv4Interface, IPv4Interface]:
    """/31 link (RFC 3021) between leaf and spine: leaf's end, spine's end."""
    place = ((leaf - 1) * MAX_SPINES + spine - 1) * MAX_UPLINKS + cable - 1
    return _link(network, (rack - 1) * UPLINKS_PER_RACK + place)


def host_link(
    network: IPv4Network, rack: int, slot: int, port: int
) -> tuple[IPv4Interface, IPv4Interface]:
    """/31 link between a host's port and its leaf: host's end, leaf's end."""
    place = (slot - 1) * MAX_HOST_PORTS + port - 1
    return _link(network, (rack - 1) * HOST_LINKS_PER_RACK + place)


def cluster_subnet(network: IPv4Network, index: int) -> IPv4Network:
    """Subnet of a cluster network, ``index`` from 1."""
    size = 2 ** (32 - CLUSTER_SUBNET_PREFIX)
    return IPv4Network((int(network.network_address) + (index - 1) * size, CLUSTER_SUBNET_PREFIX))


def cluster_address(subnet: IPv4Network, rack: int, slot: int) -> IPv4Address:
    """Address of a server's attachment in a subnet of the cluster network."""
    return subnet[rack * MAX_SLOTS + slot]


def _link(network: IPv4Network, place: int) -> tuple[IPv4Interface, IPv4Interface]:
    first = int(network.network_address) + 2 * place
    return IPv4Interface((first, 31)), IPv4Interface((first + 1, 31))
