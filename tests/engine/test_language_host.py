"""The stand-in for Pulumi's Python language host, under the real command line."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.conftest import need_engine
from tools.engine import ensure

pytestmark = pytest.mark.engine

GOOD = """
import pulumi
class Box(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:Box", name)
        self.register_outputs({})
Box("a")
print("the program speaks")
pulumi.export("stack", pulumi.get_stack())
pulumi.export("secret", pulumi.Config("p").require_secret("word"))
"""


def folder(tmp_path: Path, program: str) -> Path:
    need_engine()
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(program)
    (tmp_path / "state").mkdir()
    pulumi(tmp_path, "stack", "init", "dev")
    pulumi(tmp_path, "config", "set", "--secret", "word", "hush")
    return tmp_path


def variables(where: Path) -> dict[str, str]:
    made = ensure(lambda _: None)
    return {
        **os.environ,
        # the stand-in, also where the official host is installed
        **replace(made, language_host=None).environment(),
        "PULUMI_HOME": str(where / "home"),
        "PULUMI_BACKEND_URL": f"file://{where / 'state'}",
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "VELA_PYTHON": sys.executable,
    }


def pulumi(where: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        ["pulumi", "--non-interactive", *arguments],
        cwd=where,
        env=variables(where),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_preview_up_output_destroy(tmp_path: Path) -> None:
    where = folder(tmp_path, GOOD)
    assert "the program speaks" in pulumi(where, "preview", "--stack", "dev")
    pulumi(where, "up", "--yes", "--stack", "dev")
    assert pulumi(where, "stack", "output", "stack", "--stack", "dev").strip() == "dev"
    assert "hush" not in pulumi(where, "stack", "output", "--stack", "dev")
    pulumi(where, "destroy", "--yes", "--stack", "dev")
    assert "vela's stand-in" in pulumi(where, "about")


def test_an_error_of_the_program_is_told_once(tmp_path: Path) -> None:
    where = folder(tmp_path, "def f():\n    raise ValueError('no such thing')\nf()\n")
    said = pulumi(where, "preview", "--stack", "dev", code=1)
    assert said.split("Diagnostics:")[1].count("ValueError: no such thing") == 1
    assert "__main__.py" in said


def test_a_run_error_has_no_traceback(tmp_path: Path) -> None:
    where = folder(tmp_path, "import pulumi\nraise pulumi.RunError('not like this')\n")
    said = pulumi(where, "preview", "--stack", "dev", code=1)
    assert said.split("Diagnostics:")[1].count("not like this") == 1
    assert "Traceback" not in said


def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = f"import time, pathlib\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)\n"
    where = folder(tmp_path, program)
    process = subprocess.Popen(
        ["pulumi", "--non-interactive", "preview", "--stack", "dev"],
        cwd=where,
        env=variables(where),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    for _ in range(300):
        if mark.exists():
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[0]
    assert "Traceback" not in said
    assert process.returncode != 0
