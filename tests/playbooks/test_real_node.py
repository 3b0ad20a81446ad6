"""The whole role on a node itself: this machine, in a namespace with folders of its own.

``/etc`` and ``/var/lib`` are folders of the test there, and the programs that would act on the
machine are stand-ins that write down how they were called.
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.playbooks.support import MANIFEST, PLAYBOOKS, ROOT, bundle, file
from tests.playbooks.test_playbook import recap
from vela.model.change import Change

GRUB = file("/etc/default/grub.d/60-vela.cfg", "quiet\n", change=Change.HOST_REBOOT)
SYSCTL = file("/etc/sysctl.d/60-vela.conf", "a = 1\n", restart=("systemd-sysctl.service",))
UNIT = file("/etc/systemd/system/vela.mount", "[Mount]\n")
MOTD = file("/etc/motd", "hello\n")

STANDIN = """\
    #!/bin/sh
    test "$1" = show || echo "$(basename "$0") $*" >> {log}
    test "$1" != show || printf 'LoadState=loaded\\nActiveState=active\\n'
    test ! -e {base}/broken || test "$1" != restart || exit 1
"""
PACKAGES = """\
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule({{"name": {{"type": "list"}}, "state": {{}}}})
    with open("{log}", "a") as log:
        log.write("packages " + " ".join(module.params["name"]) + "\\n")
    with open("{base}/installed", "a") as installed:
        installed.writelines(f"{{name}} installed\\n" for name in module.params["name"])
    module.exit_json(changed=True)
"""
ENTER = """\
    set -e
    mount --bind "$1/etc" /etc
    mount --bind "$1/var-lib" /var/lib
    shift
    exec "$@"
"""


def namespaces() -> bool:
    if not shutil.which("unshare"):
        return False
    asked = ["unshare", "-Urm", "sh", "-c", "mount --bind /var/lib /etc"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not namespaces(), reason="no namespaces for an ordinary user here")


class Machine:
    """A machine to run the role on."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.etc = base / "etc"
        self.manifest = base / "var-lib" / MANIFEST.removeprefix("/var/lib/")
        for name in ("etc", "var-lib", "bin", "library"):
            (base / name).mkdir()
        for name in ("passwd", "group", "hosts"):
            shutil.copy(Path("/etc", name), self.etc)
        (self.etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        for name in ("systemctl", "update-grub"):
            self._program(f"bin/{name}", STANDIN)
        self._program("bin/dpkg-query", "#!/bin/sh\ncat {base}/installed\n")
        self._program("library/standin_packages.py", PACKAGES)
        (base / "installed").touch()
        self.inventory = base / "inventory.json"
        variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "ansible_package_use": "standin_packages",
            "vela_bundle_file": str(base / "bundle.json"),
        }
        self.inventory.write_text(json.dumps({"hosts": {"hosts": {"n1": variables}}}))

    def _program(self, name: str, text: str) -> None:
        path = self.base / name
        said = textwrap.dedent(text).format(base=self.base, log=self.base / "log")
        path.write_text(said)
        path.chmod(0o755)

    def bring(self, *files: object, packages: tuple[str, ...] = ()) -> None:
        made = bundle(None, files).model_copy(update={"packages": packages})  # type: ignore[arg-type]
        (self.base / "bundle.json").write_text(made.model_dump_json(by_alias=True))

    def log(self) -> list[str]:
        """How the stand-ins were called since the last look."""
        path = self.base / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def play(self, *options: str, code: int = 0) -> Mapping[str, int]:
        playbook = Path(sys.executable).with_name("ansible-playbook")
        asked = [str(playbook), "-i", str(self.inventory), str(PLAYBOOKS / "hosts.yml"), *options]
        enter = textwrap.dedent(ENTER)
        done = subprocess.run(
            ["unshare", "-Urm", "sh", "-c", enter, "sh", str(self.base), *asked],
            cwd=ROOT,
            env={
                "PATH": f"{self.base / 'bin'}:{os.environ['PATH']}",
                "HOME": str(self.base),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_LIBRARY": str(self.base / "library"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return recap(done.stdout)["n1"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_everything_follows_the_files_once_and_in_order(machine: Machine) -> None:
    machine.bring(GRUB, SYSCTL, UNIT, MOTD, packages=("qemu", "numactl"))
    (machine.base / "installed").write_text("numactl installed\n")
    machine.play("--check")
    assert not machine.manifest.exists()
    assert machine.log() == []
    counts = machine.play()
    assert (machine.etc / "sysctl.d/60-vela.conf").read_text() == "a = 1\n"
    assert machine.log() == [
        "packages qemu",
        "systemctl daemon-reload",
        "update-grub ",
        "systemctl restart systemd-sysctl.service",
    ]
    assert counts["changed"] == 5
    counts = machine.play()
    assert (counts["changed"], machine.log()) == (0, [])


def test_only_what_reads_a_changed_file_follows(machine: Machine) -> None:
    machine.bring(GRUB, SYSCTL, UNIT, MOTD)
    machine.play()
    machine.log()
    (machine.etc / "motd").write_text("other\n")
    assert machine.play()["changed"] == 1
    assert machine.log() == []
    (machine.etc / "sysctl.d/60-vela.conf").write_text("a = 2\n")
    machine.play()
    assert machine.log() == ["systemctl restart systemd-sysctl.service"]


def test_restart_that_failed_is_made_up_for(machine: Machine) -> None:
    machine.bring(SYSCTL)
    (machine.base / "broken").touch()
    assert machine.play(code=2)["failed"] == 1
    assert machine.log() == ["systemctl restart systemd-sysctl.service"]
    assert machine.play("--check")["changed"] == 1
    (machine.base / "broken").unlink()
    machine.play()
    assert machine.log() == ["systemctl restart systemd-sysctl.service"]
    assert machine.play()["changed"] == 0
    assert machine.log() == []
