import re
import shutil
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vela.model.diagnostic import InvalidInput
from vela.model.load import environments, load
from vela.rules import RULES, check
from vela.rules.base import Case, faults
from vela.rules.network import next_free

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = environments(ROOT)

Edits = tuple[tuple[str, str], ...]
Expected = tuple[int, str, str, str]


@dataclass(frozen=True)
class Broken:
    """A shipped environment, what is changed in it, and every fault that follows."""

    base: str
    edits: Edits
    expected: tuple[Expected, ...]
    hardware: tuple[tuple[str, str, str], ...] = ()


def edit(text: str, edits: Edits) -> str:
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def found(
    folder: Path, base: str, edits: Edits, hardware: tuple[tuple[str, str, str], ...] = ()
) -> tuple[Expected, ...]:
    shutil.copytree(ROOT / "hardware", folder / "hardware")
    for name, old, new in hardware:
        record = folder / "hardware" / f"{name}.yaml"
        record.write_text(edit(record.read_text("utf-8"), ((old, new),)), "utf-8")
    text = edit((ROOT / "environments" / f"{base}.yaml").read_text("utf-8"), edits)
    named = re.search(r"^name: (.+)$", text, re.MULTILINE)
    assert named
    (folder / "environments").mkdir()
    (folder / "environments" / f"{named[1]}.yaml").write_text(text, "utf-8")
    loaded = load(folder, named[1])
    try:
        check(loaded)
    except InvalidInput as error:
        for diagnostic in error.diagnostics:
            assert diagnostic.file == f"environments/{named[1]}.yaml"
            assert diagnostic.position
            assert diagnostic.source == text.splitlines()[diagnostic.position.line - 1]
        return tuple(
            (d.position.line if d.position else 0, d.rule, d.message, d.hint)
            for d in error.diagnostics
        )
    return ()


def one(
    base: str,
    number: str,
    line: int,
    message: str,
    hint: str,
    *edits: tuple[str, str],
    hardware: tuple[tuple[str, str, str], ...] = (),
) -> Broken:
    return Broken(base, edits, ((line, number, message, hint),), hardware)


LONG_ENVIRONMENT = "local-12345678901234"
LONG_IMAGE = "i" * 40
LOCAL_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIDfj5vIfFJdnQphXwd311Avi5HIR3zgw24DTgQY1eMBG"
LOCAL_SUBNETS = "subnets: {management: 10.240.0.0/24, storage: 10.240.1.0/24}"
LAB_NICS = "nics: {model: Intel 82576 (igb), count: 2, ports: 1, speed: 100G}\n"
SWITCHES = "switch: {leaf: dellemc-s5232f-c32, spine: dellemc-s5232f-c32}"
CLUSTER = "  cluster_network: {profile: hopper-1, cidr: 10.0.0.0/9, attachments: 8}\n"

BROKEN: dict[str, tuple[Broken, ...]] = {
    "VELA-CLOUD-001": (
        one(
            "local",
            "VELA-CLOUD-001",
            5,
            "IBM Cloud has no region us-eats",
            "did you mean us-east?",
            ("region: us-east\n", "region: us-eats\n"),
        ),
        one(
            "local",
            "VELA-CLOUD-001",
            5,
            "IBM Cloud has no region zz",
            "one of au-syd, br-sao, ca-mon, ca-tor, eu-de, eu-es, eu-gb, in-che, in-mum, "
            "jp-osa, jp-tok, us-east, us-south",
            ("region: us-east\n", "region: zz\n"),
        ),
    ),
    "VELA-CLOUD-002": (
        one(
            "local",
            "VELA-CLOUD-002",
            6,
            "region us-east has no zone us-east-4",
            "its zones are us-east-1, us-east-2, us-east-3",
            ("zone: us-east-3", "zone: us-east-4"),
        ),
        one(
            "local",
            "VELA-CLOUD-002",
            6,
            "region in-che has no zone in-che-2",
            "its zones are in-che-1",
            ("region: us-east\n", "region: in-che\n"),
            ("zone: us-east-3", "zone: in-che-2"),
        ),
    ),
    "VELA-CLOUD-003": (
        one(
            "local",
            "VELA-CLOUD-003",
            15,
            "IBM Cloud has no bare-metal profile bx2-metal-96x385",
            "did you mean bx2-metal-96x384?",
            hardware=(("lab-q35", "profile: bx2-metal-96x384", "profile: bx2-metal-96x385"),),
        ),
        one(
            "mi300x",
            "VELA-CLOUD-003",
            18,
            "gx3d-metal-224x2048x8mi300x-sn is not sold in eu-de",
            "it is sold in us-east",
            ("region: us-east\n", "region: eu-de\n"),
            ("zone: us-east-3", "zone: eu-de-2"),
        ),
        Broken(
            "hopper",
            (),
            (
                (
                    15,
                    "VELA-HOST-003",
                    "zz cannot join a cluster network",
                    "these can: gx3d-160x1792x8h100, gx3d-160x1792x8h200",
                ),
                (
                    18,
                    "VELA-CLOUD-003",
                    "IBM Cloud has no virtual-server profile zz",
                    "see vela/rules/catalogue.py",
                ),
            ),
            (("gx3d-160x1792x8h100", "profile: gx3d-160x1792x8h100", "profile: zz"),),
        ),
    ),
    "VELA-CLOUD-004": (
        one(
            "vela",
            "VELA-CLOUD-004",
            15,
            "190 hosts are more than the account's 189",
            "ask IBM for more and say so: quotas: {bare_metal_servers: 190}",
            ("bare_metal_servers: 200", "bare_metal_servers: 189"),
        ),
        one(
            "hopper",
            "VELA-CLOUD-004",
            5,
            "26 hosts are more than the account's 25",
            "ask IBM for more and say so: quotas: {virtual_servers: 26}",
            ("per_rack: 2", "per_rack: 13"),
        ),
    ),
    "VELA-CLOUD-005": (
        one(
            "local",
            "VELA-CLOUD-005",
            9,
            "9 subnets give each host 9 attachments, IBM allows 8",
            "put what needs no interface of its own into one subnet",
            (
                "storage: 10.240.1.0/24",
                ", ".join(f"s{index}: 10.240.{index}.0/24" for index in range(1, 9)),
            ),
        ),
    ),
    "VELA-CLOUD-006": (
        one(
            "hopper",
            "VELA-CLOUD-006",
            15,
            "profile h100 is deprecated",
            "write hopper-1",
            ("profile: hopper-1", "profile: h100"),
        ),
        one(
            "hopper",
            "VELA-CLOUD-006",
            15,
            "IBM Cloud has no cluster network profile hopper-2",
            "there is hopper-1",
            ("profile: hopper-1", "profile: hopper-2"),
        ),
        one(
            "hopper",
            "VELA-CLOUD-006",
            15,
            "hopper-1 is not in zone us-east-1",
            "it is in us-east-3, eu-de-2, in-che-1",
            ("zone: us-east-3", "zone: us-east-1"),
        ),
    ),
    "VELA-CLOUD-007": (
        one(
            "local",
            "VELA-CLOUD-007",
            33,
            f"{LONG_ENVIRONMENT}-{LONG_IMAGE}-0a1b2c3d has 70 characters, IBM allows 63",
            "make the name of the image 7 shorter",
            ("name: local", f"name: {LONG_ENVIRONMENT}"),
            ("image: debian-12-guest", f"image: {LONG_IMAGE}"),
            ("  debian-12-guest:", f"  {LONG_IMAGE}:"),
        ),
    ),
    "VELA-CLOUD-008": (
        one(
            "local",
            "VELA-CLOUD-008",
            14,
            "with ours each interface has 6 groups, IBM allows 5",
            "name at most 4",
            ("[192.0.2.0/24]\n", "[192.0.2.0/24]\n    security_groups: [a, b, c, d, e]\n"),
        ),
    ),
    "VELA-CLOUD-009": (
        one(
            "local",
            "VELA-CLOUD-009",
            12,
            "key two is the same key as ops",
            "IBM Cloud takes each key once; remove one of them",
            ('local"}', f'local", two: "ssh-ed25519 {LOCAL_KEY} other"}}'),
        ),
    ),
    "VELA-CLOUD-010": (
        Broken(
            "local",
            (
                (
                    "[192.0.2.0/24]\n",
                    "\n"
                    + "".join(
                        f"      - {network}\n"
                        for network in ("192.0.2.0/24", "64.0.0.0/2", "128.0.0.0/1", "0.0.0.0/0")
                    ),
                ),
            ),
            (
                (
                    16,
                    "VELA-CLOUD-010",
                    "128.0.0.0/1 lets the whole internet try to log in",
                    "name the networks of your offices and jump hosts",
                ),
                (
                    17,
                    "VELA-CLOUD-010",
                    "0.0.0.0/0 lets the whole internet try to log in",
                    "name the networks of your offices and jump hosts",
                ),
            ),
        ),
    ),
    "VELA-CLOUD-011": (
        one(
            "local",
            "VELA-CLOUD-011",
            18,
            "there is no image debian-12-kwm",
            "did you mean debian-12-kvm?",
            ("image: debian-12-kvm", "image: debian-12-kwm"),
        ),
        one(
            "local",
            "VELA-CLOUD-011",
            22,
            "there is no image zz",
            "describe it under images: zz",
            ("image: debian-12-guest", "image: zz"),
        ),
        one(
            "hopper",
            "VELA-CLOUD-011",
            14,
            "there is no image zz",
            "describe it under images: zz",
            ("image: ubuntu-24.04-bastion", "image: zz"),
        ),
        one(
            "vela",
            "VELA-CLOUD-011",
            23,
            "there is no image zz",
            "describe it under images: zz",
            ("r48-h03: {state: absent}", "r48-h03: {image: zz}"),
        ),
    ),
    "VELA-CLOUD-012": (
        one(
            "local",
            "VELA-CLOUD-012",
            30,
            "IBM Cloud imports images from cos:// alone",
            "write cos://REGION/BUCKET/OBJECT.qcow2",
            (
                "cos://us-east/vela-images/debian-12-kvm.qcow2",
                "https://images.example/debian-12-kvm.qcow2",
            ),
        ),
        one(
            "local",
            "VELA-CLOUD-012",
            30,
            "cos://us-east/vela-images/debian-12-kvm.img is neither QCOW2 nor VHD",
            "the object's name must end in .qcow2 or .vhd, in lower case",
            ("debian-12-kvm.qcow2", "debian-12-kvm.img"),
        ),
        one(
            "local",
            "VELA-CLOUD-012",
            29,
            "image debian-12-kvm needs operating_system",
            "add operating_system: ubuntu-24-04-amd64, or what it is",
            ("    operating_system: debian-12-amd64\n", ""),
        ),
    ),
    "VELA-CLOUD-013": (
        one(
            "local",
            "VELA-CLOUD-013",
            36,
            "images debian-12-kvm and debian.12-kvm have the same name at IBM, "
            "local-debian-12-kvm-4f5e2c1b",
            "rename one of them",
            (
                "lab: {",
                (
                    "  debian.12-kvm:\n"
                    "    href: cos://us-east/vela-images/other.qcow2\n"
                    f"    sha256: 4f5e2c1b{'0' * 56}\n"
                    "lab: {"
                ),
            ),
        ),
    ),
    "VELA-NET-001": (
        one(
            "local",
            "VELA-NET-001",
            9,
            "there is no subnet called management",
            "add management: 10.240.16.0/20",
            ("management:", "ops:"),
        ),
        one(
            "local",
            "VELA-NET-001",
            9,
            "there is no subnet called management",
            "name one of them management",
            ("management:", "ops:"),
            ("cidr: 10.240.0.0/16", "cidr: 10.240.0.0/23"),
        ),
    ),
    "VELA-NET-002": (
        one(
            "local",
            "VELA-NET-002",
            9,
            "subnet storage 10.241.1.0/24 is not inside 10.240.0.0/16",
            "the next free /24 is 10.240.1.0/24",
            ("storage: 10.240.1.0/24", "storage: 10.241.1.0/24"),
        ),
        one(
            "local",
            "VELA-NET-002",
            9,
            "subnet storage 10.240.1.0/24 is not inside 10.240.0.0/24",
            "10.240.0.0/24 has no free /24 left",
            ("cidr: 10.240.0.0/16", "cidr: 10.240.0.0/24"),
        ),
    ),
    "VELA-NET-003": (
        one(
            "local",
            "VELA-NET-003",
            9,
            "subnet storage 10.240.0.0/24 overlaps management 10.240.0.0/24",
            "the next free /24 is 10.240.1.0/24",
            ("storage: 10.240.1.0/24", "storage: 10.240.0.0/24"),
        ),
    ),
    "VELA-NET-004": (
        Broken(
            "local",
            (("racks: 2", "racks: 4"),),
            tuple(
                (
                    9,
                    "VELA-NET-004",
                    f"subnet {subnet} has room for 3 racks of 64 addresses, 4 are asked for",
                    "a /23 is needed; the next free /23 is 10.240.2.0/23",
                )
                for subnet in ("management 10.240.0.0/24", "storage 10.240.1.0/24")
            ),
        ),
    ),
    "VELA-NET-005": (
        one(
            "local",
            "VELA-NET-005",
            18,
            "16 addresses a rack have room for 12 hosts",
            "set cloud.network.addresses_per_rack: 32",
            ("  per_rack: 1\n", "  per_rack: 13\n"),
            ("racks: 2", "racks: 1"),
            (LOCAL_SUBNETS, f"{LOCAL_SUBNETS}\n    addresses_per_rack: 16"),
        ),
    ),
    "VELA-NET-006": (
        one(
            "hopper",
            "VELA-NET-006",
            9,
            "the VPC's 10.0.0.0/16 overlaps the cluster network 10.0.0.0/9",
            "10.240.0.0/16 lies outside 10.0.0.0/9",
            ("cidr: 10.242.0.0/16", "cidr: 10.0.0.0/16"),
            ("management: 10.242.0.0/24", "management: 10.0.0.0/24"),
        ),
        one(
            "hopper",
            "VELA-NET-006",
            9,
            "the VPC's 10.242.0.0/16 overlaps the cluster network 10.128.0.0/9",
            "choose another cluster_network.cidr",
            ("cidr: 10.0.0.0/9", "cidr: 10.128.0.0/9"),
        ),
    ),
    "VELA-NET-007": (
        one(
            "local",
            "VELA-NET-007",
            27,
            "fabric hosts 10.240.0.0/13 overlaps the VPC's 10.240.0.0/16",
            "choose a network outside it",
            ("spines: 2\n", "spines: 2\n  addresses: {hosts: 10.240.0.0/13}\n"),
        ),
        one(
            "local",
            "VELA-NET-007",
            27,
            "fabric loopbacks 10.192.0.0/16 overlaps uplinks 10.192.0.0/14",
            "give each its own network",
            ("spines: 2\n", "spines: 2\n  addresses: {loopbacks: 10.192.0.0/16}\n"),
        ),
        one(
            "local",
            "VELA-NET-007",
            23,
            "fabric uplinks 10.192.0.0/14 overlaps the VPC's 10.192.0.0/16",
            "choose a network outside it",
            ("cidr: 10.240.0.0/16", "cidr: 10.192.0.0/16"),
            (LOCAL_SUBNETS, LOCAL_SUBNETS.replace("10.240.", "10.192.")),
        ),
    ),
    "VELA-NET-008": (
        Broken(
            "local",
            (
                (
                    "spines: 2\n",
                    (
                        "spines: 2\n  addresses: {uplinks: 10.192.0.0/22, "
                        "loopbacks: 10.196.0.0/26, hosts: 10.200.0.0/21}\n"
                    ),
                ),
            ),
            tuple(
                (
                    27,
                    "VELA-NET-008",
                    f"fabric {network} has no room for 2 racks",
                    f"a /{prefix} is needed",
                )
                for network, prefix in (
                    ("uplinks 10.192.0.0/22", 21),
                    ("loopbacks 10.196.0.0/26", 25),
                    ("hosts 10.200.0.0/21", 20),
                )
            ),
        ),
    ),
    "VELA-NET-009": (
        one(
            "hopper",
            "VELA-NET-009",
            15,
            "10.0.0.0/16 has no room for 8 subnets",
            "a /15 is needed",
            ("cidr: 10.0.0.0/9", "cidr: 10.0.0.0/16"),
        ),
    ),
    "VELA-HOST-001": (
        one(
            "vela",
            "VELA-HOST-001",
            23,
            "there is no host or rack r49-h03",
            "did you mean r48-h03?",
            ("r48-h03:", "r49-h03:"),
        ),
        one(
            "local",
            "VELA-HOST-001",
            18,
            "there is no host or rack zz",
            "hosts are r01-h01 to r02-h01",
            ("  per_rack: 1\n", "  per_rack: 1\n  overrides: {zz: {state: absent}}\n"),
        ),
    ),
    "VELA-HOST-002": (
        one(
            "local",
            "VELA-HOST-002",
            18,
            "every host is absent",
            "leave one",
            (
                "  per_rack: 1\n",
                "  per_rack: 1\n  overrides: {r01: {state: absent}, r02-h01: {state: absent}}\n",
            ),
        ),
    ),
    "VELA-HOST-003": (
        one(
            "hopper",
            "VELA-HOST-003",
            22,
            "gx3d-160x1792x8h100 is a virtual server, of which IBM runs the hypervisor",
            "remove guests, or choose a bare-metal type",
            (
                "images:\n",
                "guests: {vcpus: 999, memory: 9 TiB, image: ubuntu-24.04-gpu}\nimages:\n",
            ),
        ),
        Broken(
            "hopper",
            (
                (
                    "images:\n",
                    f"fabric: {{os: sonic, {SWITCHES}, spines: 1, speed: 100G}}\nimages:\n",
                ),
            ),
            (
                (
                    22,
                    "VELA-FABRIC-008",
                    "gx3d-160x1792x8h100 has no card on a fabric of ours",
                    "remove fabric, or choose a type with nics",
                ),
                (
                    22,
                    "VELA-HOST-003",
                    "gx3d-160x1792x8h100 is a virtual server, of which IBM runs the fabric",
                    "remove fabric, or choose a bare-metal type",
                ),
            ),
        ),
        one(
            "hopper",
            "VELA-HOST-003",
            15,
            "gx3d-24x120x1a100p cannot join a cluster network",
            "these can: gx3d-160x1792x8h100, gx3d-160x1792x8h200",
            hardware=(
                (
                    "gx3d-160x1792x8h100",
                    "profile: gx3d-160x1792x8h100",
                    "profile: gx3d-24x120x1a100p",
                ),
            ),
        ),
        one(
            "hopper",
            "VELA-HOST-003",
            17,
            "these servers need a cluster network for RoCE",
            "add cloud.cluster_network: {profile: hopper-1}",
            (CLUSTER, ""),
        ),
    ),
    "VELA-HOST-004": (
        one(
            "local",
            "VELA-HOST-004",
            14,
            "bare-metal servers cannot join a cluster network",
            "remove it, or choose a virtual server type such as gx3d-160x1792x8h100",
            ("hosts:\n", f"{CLUSTER}hosts:\n"),
        ),
    ),
    "VELA-HOST-005": (
        one(
            "local",
            "VELA-HOST-005",
            20,
            "1 x 2 virtual CPUs leave none of the host's 2",
            "at most 1 for each guest",
            ("vcpus: 1", "vcpus: 2"),
        ),
        one(
            "local",
            "VELA-HOST-005",
            20,
            "2 x 1 virtual CPUs leave none of the host's 2",
            "fewer guests on a host",
            ("memory: 2 GiB", "memory: 1 GiB\n  per_host: 2"),
        ),
    ),
    "VELA-HOST-006": (
        one(
            "local",
            "VELA-HOST-006",
            21,
            "1 x 4 GiB do not fit the host's 4 GiB with 1 GiB kept for the host",
            "at most 3 GiB for each guest",
            ("memory: 2 GiB", "memory: 4 GiB"),
        ),
        one(
            "local",
            "VELA-HOST-006",
            21,
            "1 x 4 GiB do not fit the host's 4 GiB with 1 GiB kept for the host",
            "at most 3 GiB for each guest",
            ("memory: 2 GiB", "memory: 3.5 GiB"),
        ),
        one(
            "vela",
            "VELA-HOST-006",
            27,
            "1 x 1475 GiB do not fit the host's 1536 GiB with 62 GiB kept for the host",
            "at most 1474 GiB for each guest",
            ("memory: 1280 GiB", "memory: 1475 GiB"),
        ),
        Broken(
            "local",
            (("memory: 2 GiB", "memory: 1 GiB\n  per_host: 4"),),
            (
                (
                    20,
                    "VELA-HOST-005",
                    "4 x 1 virtual CPUs leave none of the host's 2",
                    "fewer guests on a host",
                ),
                (
                    21,
                    "VELA-HOST-006",
                    "4 x 1 GiB do not fit the host's 4 GiB with 1 GiB kept for the host",
                    "fewer guests on a host",
                ),
            ),
        ),
    ),
    "VELA-FABRIC-001": (
        one(
            "vela",
            "VELA-FABRIC-001",
            31,
            "dellemc-s5232f-c32 does not run eos",
            "it runs sonic",
            ("os: sonic", "os: eos"),
        ),
        Broken(
            "vela",
            (("os: sonic", "os: cumulus"),),
            (
                (31, "VELA-FABRIC-001", "dellemc-s5232f-c32 does not run cumulus", "it runs sonic"),
                (
                    31,
                    "VELA-FABRIC-001",
                    "chassis-256x100g does not run cumulus",
                    "it runs sonic, eos",
                ),
            ),
        ),
    ),
    "VELA-FABRIC-002": (
        Broken(
            "vela",
            (("speed: 100G", "speed: 200G"),),
            tuple(
                (
                    35,
                    "VELA-FABRIC-002",
                    f"{what} ports of 100G, the fabric is 200G",
                    "speed: 100G",
                )
                for what in (
                    "dellemc-s5232f-c32 has",
                    "chassis-256x100g has",
                    "the hosts' cards have",
                )
            ),
        ),
    ),
    "VELA-FABRIC-003": (
        one(
            "local",
            "VELA-FABRIC-003",
            25,
            "a leaf needs 1 ports down and 32 up, dellemc-s5232f-c32 has 32",
            "fewer hosts in a rack, fewer uplinks, or a larger leaf",
            ("spines: 2\n", "spines: 16\n  uplinks_per_spine: 2\n"),
        ),
    ),
    "VELA-FABRIC-004": (
        one(
            "vela",
            "VELA-FABRIC-004",
            31,
            "a spine needs 288 ports, chassis-256x100g has 256",
            "enough for 42 racks; take a larger spine or fewer uplinks",
            ("uplinks_per_spine: 2", "uplinks_per_spine: 3"),
        ),
    ),
    "VELA-FABRIC-005": (
        one(
            "vela",
            "VELA-FABRIC-005",
            37,
            "DSCP 48 is used for RoCE data and for notifications",
            "NVIDIA's guides use 26 and 48",
            (" dscp: 26", " dscp: 48"),
        ),
        one(
            "vela",
            "VELA-FABRIC-005",
            37,
            "priority 6 is used for RoCE data and for notifications",
            "NVIDIA's guides use 3 and 6",
            ("priority: 3", "priority: 6"),
        ),
    ),
    "VELA-FABRIC-006": (
        one(
            "vela",
            "VELA-FABRIC-006",
            37,
            "ECN min 1,500,000 B is not below max 1,500,000 B",
            "150 kB and 1500 kB are usual at 100G",
            ("min: 150 kB", "min: 1500 kB"),
        ),
    ),
    "VELA-FABRIC-007": (
        one(
            "local",
            "VELA-FABRIC-007",
            27,
            "AS 4200001015 of the spines is among the leafs'",
            "the leafs take 4200001000 to 4200001015",
            ("spines: 2\n", "spines: 2\n  asn: {spines: 4200001015}\n"),
        ),
    ),
    "VELA-FABRIC-008": (
        one(
            "local",
            "VELA-FABRIC-008",
            23,
            "lab-q35 has no card on a fabric of ours",
            "remove fabric, or choose a type with nics",
            hardware=(("lab-q35", LAB_NICS, ""),),
        ),
        one(
            "local",
            "VELA-FABRIC-008",
            15,
            "17 fabric ports a host are more than we address",
            "at most 16",
            hardware=(("lab-q35", "count: 2, ports: 1", "count: 17, ports: 1"),),
        ),
    ),
}

AT_THE_LIMIT: dict[str, tuple[str, Edits]] = {
    "quota": ("vela", (("bare_metal_servers: 200", "bare_metal_servers: 190"),)),
    "subnets": (
        "local",
        (
            (
                "storage: 10.240.1.0/24",
                ", ".join(f"s{index}: 10.240.{index}.0/24" for index in range(1, 8)),
            ),
        ),
    ),
    "security groups": (
        "local",
        (("[192.0.2.0/24]\n", "[192.0.2.0/24]\n    security_groups: [a, b, c, d]\n"),),
    ),
    "racks in a subnet": ("local", (("racks: 2", "racks: 3"),)),
    "hosts in a rack": (
        "local",
        (
            ("  per_rack: 1\n", "  per_rack: 12\n"),
            (LOCAL_SUBNETS, f"{LOCAL_SUBNETS}\n    addresses_per_rack: 16"),
        ),
    ),
    "fabric networks": (
        "local",
        (
            (
                "spines: 2\n",
                (
                    "spines: 2\n  addresses: {uplinks: 10.192.0.0/21, "
                    "loopbacks: 10.196.0.0/25, hosts: 10.200.0.0/20}\n"
                ),
            ),
        ),
    ),
    "memory": ("vela", (("memory: 1280 GiB", "memory: 1474 GiB"),)),
    "CPUs": ("vela", (("vcpus: 80", "vcpus: 95"),)),
    "leaf ports": ("local", (("spines: 2\n", "spines: 15\n  uplinks_per_spine: 2\n"),)),
    "spines' AS": (
        "local",
        (("spines: 2\n", "spines: 2\n  asn: {spines: 4200001016}\n"),),
    ),
}


@pytest.mark.parametrize(
    ("number", "case"),
    [
        pytest.param(number, case, id=f"{number}-{index}")
        for number, cases in BROKEN.items()
        for index, case in enumerate(cases, 1)
    ],
)
def test_fault_is_told_with_its_line_and_hint(tmp_path: Path, number: str, case: Broken) -> None:
    assert number in {rule for _, rule, _, _ in case.expected}
    assert found(tmp_path, case.base, case.edits, case.hardware) == case.expected


@pytest.mark.parametrize(("base", "edits"), AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
def test_limit_itself_is_no_fault(tmp_path: Path, base: str, edits: Edits) -> None:
    assert found(tmp_path, base, edits) == ()


def test_every_rule_has_a_case() -> None:
    loaded = load(ROOT, "local")
    assert list(faults(Case(loaded.environment, loaded.hardware))) == []
    assert set(BROKEN) == set(RULES)
    assert all(number == rule.number for number, rule in RULES.items())


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_environments_have_no_fault(name: str) -> None:
    loaded = load(ROOT, name)
    assert list(faults(Case(loaded.environment, loaded.hardware))) == []


def test_four_environments_are_shipped() -> None:
    assert SHIPPED == ["hopper", "local", "mi300x", "vela"]


def test_all_faults_of_a_file_are_told_in_its_order(tmp_path: Path) -> None:
    told = found(
        tmp_path,
        "local",
        (
            ("zone: us-east-3", "zone: us-east-9"),
            ("vcpus: 1", "vcpus: 2"),
            ("os: sonic", "os: eos"),
        ),
    )
    assert [(line, rule) for line, rule, _, _ in told] == [
        (6, "VELA-CLOUD-002"),
        (20, "VELA-HOST-005"),
        (25, "VELA-FABRIC-001"),
        (25, "VELA-FABRIC-001"),
    ]


def network(address: int, prefix: int) -> IPv4Network:
    return IPv4Network((address >> (32 - prefix) << (32 - prefix), prefix))


OUTER = st.builds(network, st.integers(0, 2**32 - 1), st.integers(20, 28))


@given(data=st.data(), outer=OUTER)
def test_next_free_is_the_lowest_that_fits(data: st.DataObject, outer: IPv4Network) -> None:
    around = st.integers(
        max(0, int(outer.network_address) - outer.num_addresses),
        min(2**32 - 1, int(outer.broadcast_address) + outer.num_addresses),
    )
    taken = data.draw(st.lists(st.builds(network, around, st.integers(19, 32)), max_size=12))
    prefix = data.draw(st.integers(18, min(32, outer.prefixlen + 7)))
    every = outer.subnets(new_prefix=prefix) if prefix >= outer.prefixlen else iter(())
    lowest = next((net for net in every if not any(net.overlaps(t) for t in taken)), None)
    assert next_free(outer, taken, prefix) == lowest
