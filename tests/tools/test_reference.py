import subprocess
import sys

from tests.conftest import ROOT


def test_the_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
