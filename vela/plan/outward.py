"""What the nodes may reach outside themselves: names, time, packages, HTTPS."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from vela.model.environment import Environment
from vela.plan.types import Outward

IBM_SERVICES = (IPv4Network("161.26.0.0/16"), IPv4Network("166.8.0.0/14"))
"""IaaS and service endpoints, reached inside IBM's own network (IBM's VPC documentation)."""

IBM_TIME = "time.adn.networklayer.com"
ANYWHERE = IPv4Network("0.0.0.0/0")


def outward(environment: Environment) -> tuple[Outward, ...]:
    """Connections that nodes may open; each one once.

    The environment's own resolvers and time servers are let through wherever they are. A time
    server that is given by name may have any address, unless it is IBM's.
    """
    return tuple(dict.fromkeys(_outward(environment)))


def _outward(environment: Environment) -> Iterator[Outward]:
    network = environment.cloud.network
    for services in IBM_SERVICES:
        yield from (Outward("udp", port, services) for port in (53, 123))
        yield from (Outward("tcp", port, services) for port in (53, 80, 443))
    if network.public_gateway:
        yield Outward("tcp", 443, ANYWHERE)
    for resolver in network.dns:
        if not is_service(IPv4Network(resolver)):
            yield Outward("udp", 53, IPv4Network(resolver))
            yield Outward("tcp", 53, IPv4Network(resolver))
    for server in network.ntp:
        remote = _time_server(server)
        if not is_service(remote):
            yield Outward("udp", 123, remote)


def is_service(network: IPv4Network) -> bool:
    """Whether it lies in IBM's own service networks."""
    return any(network.subnet_of(services) for services in IBM_SERVICES)


def _time_server(server: str) -> IPv4Network:
    if server == IBM_TIME:
        return IBM_SERVICES[0]
    try:
        return IPv4Network(IPv4Address(server))
    except AddressValueError:
        return ANYWHERE
