"""The environment file: one description of one cluster."""

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Literal

from pydantic import Field, model_validator

from vela.model.change import Change
from vela.model.fabric import Fabric
from vela.model.types import (
    Address,
    Bytes,
    ImageName,
    Name,
    Network,
    Record,
    Says,
    Sha256,
    SshKey,
    TypeName,
    refuse,
)


class VpcNetwork(Record):
    """Addresses of the VPC."""

    cidr: Annotated[Network, Says(Change.REPROVISION, "Address prefix of the VPC in its zone.")]
    subnets: Annotated[
        dict[Name, Network],
        Says(
            Change.REPROVISION,
            "Subnets by name; each host gets one network interface in each. "
            "`management` must be among them.",
            "{management: 10.240.0.0/20, storage: 10.240.16.0/20}",
        ),
        Field(min_length=1),
    ]
    addresses_per_rack: Annotated[
        Literal[16, 32, 64, 128],
        Says(
            Change.REPROVISION,
            "Addresses kept for each rack in each subnet, so that no address moves when racks "
            "or hosts come and go.",
        ),
    ] = 64
    public_gateway: Annotated[
        bool, Says(Change.LIVE, "Whether the subnets reach the internet through a public gateway.")
    ] = True
    dns: Annotated[
        tuple[Address, ...],
        Says(Change.LIVE, "Resolvers for the hosts; IBM Cloud's own by default."),
    ] = (IPv4Address("161.26.0.10"), IPv4Address("161.26.0.11"))
    ntp: Annotated[
        tuple[str, ...], Says(Change.LIVE, "Time servers; IBM Cloud's own by default.")
    ] = ("time.adn.networklayer.com",)


class Bastion(Record):
    """A small virtual server with a floating IP, the only way in by SSH."""

    profile: Annotated[str, Says(Change.REPROVISION, "Profile of the virtual server.")] = "bx2-2x8"
    image: Annotated[ImageName, Says(Change.REPROVISION, "Its image, one of `images`.")]


class Access(Record):
    """Who may log in, and from where."""

    ssh_keys: Annotated[
        dict[Name, SshKey],
        Says(Change.LIVE, "SSH public keys by name.", '{ops: "ssh-ed25519 AAAA…"}'),
        Field(min_length=1),
    ]
    allow_ssh_from: Annotated[
        tuple[Network, ...],
        Says(Change.LIVE, "Networks that may reach port 22 of the bastion, else of the hosts."),
    ] = ()
    user: Annotated[
        str,
        Says(Change.LIVE, "User that the playbooks log in as."),
        Field(pattern=r"^[a-z_][-a-z0-9_]{0,31}$"),
    ] = "root"
    security_groups: Annotated[
        tuple[str, ...],
        Says(
            Change.LIVE,
            "Ids of existing security groups that every host interface joins besides ours.",
        ),
    ] = ()
    bastion: Annotated[
        Bastion | None, Says(Change.LIVE, "Jump host; none: hosts are reached directly.")
    ] = None


class ClusterNetwork(Record):
    """IBM's own RoCE network for virtual servers; IBM runs its fabric."""

    profile: Annotated[
        str, Says(Change.REPROVISION, "Cluster network profile, such as `hopper-1`.")
    ] = "hopper-1"
    cidr: Annotated[
        Network, Says(Change.REPROVISION, "Its own address space, routed nowhere else.")
    ] = IPv4Network("10.0.0.0/9")
    attachments: Annotated[
        Literal[8, 16, 32],
        Says(Change.REPROVISION, "Attachments of each server, and subnets of the network."),
    ] = 8


class Quotas(Record):
    """Limits of the account; the defaults are what IBM gives a new account."""

    bare_metal_servers: Annotated[
        int, Says(Change.LIVE, "Bare-metal servers in the account."), Field(ge=0)
    ] = 25
    virtual_servers: Annotated[
        int, Says(Change.LIVE, "Virtual servers with GPUs that the account may run."), Field(ge=0)
    ] = 25


class Cloud(Record):
    """What IBM Cloud provides."""

    region: Annotated[str, Says(Change.REPROVISION, "Region.", "us-east")]
    zone: Annotated[str, Says(Change.REPROVISION, "Zone of the region.", "us-east-3")]
    resource_group: Annotated[
        str,
        Says(Change.REPROVISION, "Name of an existing resource group."),
        Field(min_length=1, max_length=40),
    ] = "Default"
    network: Annotated[VpcNetwork, Says(Change.REPROVISION, "Addresses of the VPC.")]
    access: Annotated[Access, Says(Change.LIVE, "Who may log in, and from where.")]
    cluster_network: Annotated[
        ClusterNetwork | None,
        Says(Change.REPROVISION, "RoCE network of IBM for hosts that are virtual servers."),
    ] = None
    quotas: Annotated[Quotas, Says(Change.LIVE, "Limits of the account.")] = Quotas()
    tags: Annotated[
        tuple[Name, ...],
        Says(Change.LIVE, "User tags on every resource, besides `vela` and the name."),
    ] = ()
    protect: Annotated[
        bool,
        Says(Change.LIVE, "Refuse deletes and replacements of VPC, subnets, hosts and images."),
    ] = False


class HostOverride(Record):
    """What is different about one host or one rack."""

    state: Annotated[
        Literal["active", "maintenance", "absent"],
        Says(
            Change.HOST_DRAIN,
            "`maintenance`: kept, but left alone by the playbooks; `absent`: not there, its "
            "addresses stay reserved.",
        ),
    ] = "active"
    image: Annotated[
        ImageName | None, Says(Change.REPROVISION, "Another image than the other hosts'.")
    ] = None


class Hosts(Record):
    """The GPU hosts."""

    type: Annotated[
        TypeName, Says(Change.REPROVISION, "Server type, a file in hardware/.", "hgx-a100-80g")
    ]
    racks: Annotated[int, Says(Change.REPROVISION, "Racks."), Field(ge=1, le=200)]
    per_rack: Annotated[int, Says(Change.REPROVISION, "Hosts in each rack."), Field(ge=1, le=48)]
    image: Annotated[ImageName, Says(Change.REPROVISION, "Image, one of `images`.")]
    overrides: Annotated[
        dict[str, HostOverride],
        Says(Change.HOST_DRAIN, "By host or rack.", "{r07-h02: {state: maintenance}}"),
        Field(default_factory=dict),
    ]


class Guests(Record):
    """The virtual machines that tenants get, on hosts that we run ourselves."""

    per_host: Annotated[Literal[1, 2, 4, 8], Says(Change.GUEST_RESTART, "Guests on each host.")] = 1
    vcpus: Annotated[int, Says(Change.GUEST_RESTART, "Virtual CPUs of a guest."), Field(ge=1)]
    memory: Annotated[Bytes, Says(Change.GUEST_RESTART, "Memory of a guest.", "1280 GiB")]
    image: Annotated[ImageName, Says(Change.GUEST_RESTART, "Image, one of `images`.")]


class Image(Record):
    """An image, by what it is made from, or one that IBM Cloud already holds."""

    href: Annotated[
        str | None,
        Says(Change.REPROVISION, "Where it lies.", "cos://us-east/images/kvm.qcow2"),
    ] = None
    sha256: Annotated[Sha256 | None, Says(Change.REPROVISION, "Checksum of that file.")] = None
    operating_system: Annotated[
        str | None,
        Says(Change.REPROVISION, "IBM Cloud's name of its system.", "ubuntu-24-04-amd64"),
    ] = None
    id: Annotated[
        str | None,
        Says(Change.REPROVISION, "Id of an image of the region, in place of `href`."),
        Field(pattern=r"^r[0-9]{3}-[-0-9a-f]{36}$"),
    ] = None

    @model_validator(mode="after")
    def _one_source(self) -> "Image":
        if (self.href is None) == (self.id is None):
            refuse(
                "an image needs either href or id", "href: cos://… with its sha256, or id: r014-…"
            )
        if self.href is not None and self.sha256 is None:
            refuse(
                "an image by href needs its sha256",
                "IBM Cloud never reads href again, so a new file is seen by its checksum alone",
            )
        return self


class Lab(Record):
    """Which parts are stand-ins on this machine, in place of the real thing."""

    cloud: Annotated[
        Literal["real", "simulated"],
        Says(Change.FORBIDDEN, "`simulated`: the simulator on 127.0.0.1 stands for IBM Cloud."),
    ] = "real"
    nodes: Annotated[
        Literal["ssh", "directories"],
        Says(Change.FORBIDDEN, "`directories`: a directory tree stands for each host and switch."),
    ] = "ssh"


class Environment(Record):
    """One cluster."""

    schema_version: Annotated[
        Literal[1], Says(Change.FORBIDDEN, "Version of this format: 1."), Field(alias="schema")
    ]
    name: Annotated[
        Name, Says(Change.FORBIDDEN, "Name of the environment, of its file and of its stack.")
    ]
    cloud: Annotated[Cloud, Says(Change.REPROVISION, "What IBM Cloud provides.")]
    hosts: Annotated[Hosts, Says(Change.REPROVISION, "The GPU hosts.")]
    guests: Annotated[Guests | None, Says(Change.GUEST_RESTART, "The guests on the hosts.")] = None
    fabric: Annotated[
        Fabric | None,
        Says(Change.FABRIC_DRAIN, "Leaf and spine switches; none where IBM runs the fabric."),
    ] = None
    images: Annotated[
        dict[ImageName, Image],
        Says(Change.REPROVISION, "Images by name."),
        Field(default_factory=dict),
    ]
    lab: Annotated[Lab, Says(Change.FORBIDDEN, "Stand-ins on this machine.")] = Lab()
