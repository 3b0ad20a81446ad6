"""Runs the bundle module by itself: arguments as JSON on standard input, the result on output.

Does what Ansible's wrapper does: the module's helpers appear below ``ansible.module_utils``.
"""

import importlib.util
import json
import runpy
import sys
from pathlib import Path
from typing import Any

ROLE = Path(__file__).resolve().parents[2] / "playbooks/roles/bundle"
MODULE = ROLE / "library/vela_bundle.py"


def bring_helpers() -> None:
    """Make the module's helpers importable under the names that Ansible gives them."""
    for name in ("vela_tree", "vela_diff", "vela_manifest"):
        full = f"ansible.module_utils.{name}"
        if full in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(full, ROLE / f"module_utils/{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)


def load() -> Any:
    """The module, to be called in this process."""
    bring_helpers()
    spec = importlib.util.spec_from_file_location("vela_bundle", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Run it."""
    from ansible.module_utils.testing import patch_module_args  # noqa: PLC0415

    bring_helpers()
    with patch_module_args(json.load(sys.stdin)):
        runpy.run_path(str(MODULE), run_name="__main__")


if __name__ == "__main__":
    main()
