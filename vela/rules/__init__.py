"""What may not be: numbered rules, each with the place in the file and a hint."""

from vela.rules.base import RULES, Rule, check

__all__ = ["RULES", "Rule", "check"]
