"""The Pulumi program: the stack's name is the environment's."""

from pathlib import Path

import pulumi

from components.cluster import declare
from vela.model.diagnostic import InvalidInput
from vela.model.load import load
from vela.plan import build
from vela.rules import check

try:
    loaded = load(Path(__file__).resolve().parent, pulumi.get_stack())
    check(loaded)
except InvalidInput as error:
    raise pulumi.RunError(f"the environment is not valid\n{error}") from None
declare(build(loaded.environment, loaded.hardware))
