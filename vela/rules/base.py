"""How a rule is written, and how all of them are run."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

from vela.model.diagnostic import InvalidInput
from vela.model.environment import Environment
from vela.model.hardware import Hardware
from vela.model.load import Loaded
from vela.model.source import Path


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at."""

    environment: Environment
    hardware: Hardware


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule found: the place in the environment file, the fault, how to mend it."""

    path: Path
    message: str
    hint: str = ""
    of_key: bool = False


Check = Callable[[Case], Iterable[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A numbered rule: its number never changes its meaning."""

    number: str
    says: str
    check: Check


RULES: dict[str, Rule] = {}
_MODULES = ("cloud", "network", "hosts", "fabric")


def rule(number: str, says: str) -> Callable[[Check], Check]:
    """Register a rule under its number.

    Args:
        number: Such as ``VELA-NET-003``; used once.
        says: The rule as a sentence that is true of a good environment.
    """

    def register(check_: Check) -> Check:
        if number in RULES:
            message = f"rule {number} exists already"
            raise ValueError(message)
        RULES[number] = Rule(number, says, check_)
        return check_

    return register


def faults(case: Case) -> Iterator[tuple[Rule, Fault]]:
    """Every fault of an environment, by rule number."""
    for module in _MODULES:
        import_module(f"vela.rules.{module}")
    for number in sorted(RULES):
        for fault in RULES[number].check(case):
            yield RULES[number], fault


def check(loaded: Loaded) -> None:
    """Hold an environment against every rule.

    Raises:
        InvalidInput: With every fault.
    """
    found = [
        loaded.document.diagnostic(
            fault.path, rule_.number, fault.message, fault.hint, of_key=fault.of_key
        )
        for rule_, fault in faults(Case(loaded.environment, loaded.hardware))
    ]
    if found:
        raise InvalidInput(found)
