import json
import os
import subprocess
import sys
from base64 import b64decode
from importlib import import_module
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools import build, engine, processes, sdk


def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_go_and_pulumi_the_two_ways_on_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_machine(tmp_path, monkeypatch)
    with pytest.raises(engine.EngineError) as caught:
        engine.ensure(lambda _: None)
    said = str(caught.value)
    assert said.startswith(
        "the Pulumi engine is not here (there is no pulumi on PATH; missing: pulumi, "
        "pulumi-resource-terraform-provider, terraform-provider-ibm) and there is no Go"
    )
    assert "1. install the Pulumi command line" in said
    assert "2. install Go 1.25 or newer" in said


@pytest.mark.parametrize(
    ("version", "taken"),
    [("v3.274.1", True), ("v3.249.0", True), ("v3.248.9", False), ("v4.0.0", False), ("?", False)],
)
def test_versions_of_a_pulumi_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
) -> None:
    empty_machine(tmp_path, monkeypatch)
    program(tmp_path / "bin" / "pulumi", f"echo {version}")
    found, why = engine.find_cli()
    assert (found is not None) is taken
    assert (why == "") is taken


def test_what_is_found_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_machine(tmp_path, monkeypatch)
    cli = program(tmp_path / "bin" / "pulumi", "echo v3.274.1")
    bridge = program(
        tmp_path
        / ".pulumi/plugins/resource-terraform-provider-v1.1.0/pulumi-resource-terraform-provider",
        "true",
    )
    provider = program(
        tmp_path
        / ".pulumi/dynamic_tf_plugins/registry.opentofu.org/ibm-cloud/ibm/1.89.0"
        / build.machine()
        / "terraform-provider-ibm_v1.89.0",
        "echo panic: boom >&2; echo $0 $1",
    )
    host = program(tmp_path / "bin" / "pulumi-language-python", "true")
    monkeypatch.setattr(engine, "overlay_folder", lambda: tmp_path / ".vela" / "engine")
    made = engine.ensure(lambda _: None)
    assert made.cli.path == cli
    assert made.bridge.path == bridge
    assert made.provider.path == provider
    assert made.language_host == host
    variables = made.environment()
    overlay = Path(variables["PATH"].split(os.pathsep)[0])
    assert (overlay / "pulumi").resolve() == cli
    assert (overlay / "pulumi-language-python").resolve() == host
    # a shell that has these variables already finds the same
    monkeypatch.setenv("PATH", variables["PATH"])
    assert engine.ensure(lambda _: None) == made
    (wrapper,) = Path(variables["PULUMI_DYNAMIC_TF_PLUGIN_CACHE_DIR"]).rglob("*_v1.89.0")
    log = tmp_path / "provider.log"
    done = subprocess.run(
        [wrapper, "serve"],
        env={"VELA_PROVIDER_LOG": str(log), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{provider} serve\n"
    assert done.stderr == ""
    assert log.read_text() == "panic: boom\n"


def test_the_key_of_a_build_changes_with_its_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pulumi"
    folder.mkdir()
    (folder / "go.mod").write_text("module x\n")
    (folder / "go.sum").write_text("")
    monkeypatch.setattr(build, "MODULES", tmp_path)
    before = build.CLI.key
    assert build.CLI.key == before
    (folder / "go.sum").write_text("another\n")
    assert build.CLI.key != before


def test_a_failed_build_shows_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "go", "echo compiling; echo 'x.go:1: no'; exit 2")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build.built(build.CLI, tmp_path / "cache", lambda _: None)
    assert caught.value.output == (
        f"compiling\nx.go:1: no\nthe whole log: {tmp_path / 'cache' / 'pulumi.log'}"
    )
    assert list((tmp_path / "cache").rglob(".pulumi.*")) == []


def test_a_build_happens_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = tmp_path / "count"
    body = f'echo x >> {count}\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"'
    program(tmp_path / "bin" / "go", body)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    first = build.built(build.CLI, tmp_path / "cache", lambda _: None)
    second = build.built(build.CLI, tmp_path / "cache", lambda _: None)
    assert first == second
    assert first.read_text() == "built\n"
    assert count.read_text() == "x\n"


def test_leftovers_are_ended_and_strangers_are_not(tmp_path: Path) -> None:
    script = f"""
import subprocess, sys, time, os
sys.path.insert(0, {str(ROOT)!r})
from tools.processes import adopt_orphans, end_leftovers
assert adopt_orphans()
subprocess.run(["sh", "-c", "cp /bin/sleep {tmp_path}/left-behind; "
                "{tmp_path}/left-behind 60 & sleep 0"], check=True)
stranger = subprocess.Popen(["sleep", "60"])
time.sleep(0.3)
print(end_leftovers({{"left-behind"}}), stranger.poll(), end_leftovers({{"left-behind"}}))
stranger.kill()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "1 None 0\n"


def test_the_last_panic(tmp_path: Path) -> None:
    log = tmp_path / "provider.log"
    assert processes.last_panic(log) is None
    log.write_text("a line\n")
    assert processes.last_panic(log) is None
    log.write_text(
        "a line\npanic: runtime error: nil\n\ngoroutine 1 [running]:\nmain.f()\n"
        "\tgithub.com/IBM-Cloud/terraform-provider-ibm@v1.89.0/ibm/vpc/subnet.go:12 +0x1\n"
        "\tgoogle.golang.org/grpc/server.go:99 +0x1\n"
    )
    assert processes.last_panic(log) == (
        "panic: runtime error: nil\n"
        "github.com/IBM-Cloud/terraform-provider-ibm@v1.89.0/ibm/vpc/subnet.go:12 +0x1"
    )


def test_sdk_engine_and_pulumi_agree() -> None:
    plugin = json.loads((sdk.SDK / "pulumi_ibm" / "pulumi-plugin.json").read_text())
    parameter = plugin["parameterization"]
    value = json.loads(b64decode(parameter["value"]))
    assert (plugin["name"], plugin["version"]) == ("terraform-provider", build.BRIDGE.release)
    assert (parameter["name"], parameter["version"]) == ("ibm", build.PROVIDER.release)
    assert value["remote"] == {
        "url": "registry.opentofu.org/ibm-cloud/ibm",
        "version": build.PROVIDER.release,
    }
    assert value["includes"] == sorted(sdk.resources())
    pins = {part: (build.MODULES / part / "go.mod").read_text() for part in
            ("pulumi", "bridge", "provider", "gensdk")}  # fmt: skip
    assert f"github.com/pulumi/pulumi/pkg/v3 v{build.CLI.release}" in pins["pulumi"]
    assert f"github.com/pulumi/pulumi/pkg/v3 v{build.GENERATOR.release}" in pins["gensdk"]
    assert f"terraform-provider-ibm v{build.PROVIDER.release}" in pins["provider"]
    assert "github.com/pulumi/pulumi-terraform-bridge/v3 v3.120.0" in pins["bridge"]
    assert '"pulumi==3.272.0"' in (ROOT / "pyproject.toml").read_text()


def test_every_resource_of_the_list_is_in_the_sdk() -> None:
    module = import_module("pulumi_ibm")
    wanted = {
        "".join(part.capitalize() for part in name.removeprefix("ibm_").split("_"))
        for name in sdk.resources()
    }
    custom = import_module("pulumi").CustomResource
    found = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, custom)
    }
    assert found - {"Provider"} == wanted


def test_reduction_keeps_what_is_used_and_no_text() -> None:
    full = {
        "description": "long",
        "types": {"a": {"description": "x"}, "b": {"$ref": "#/types/a"}, "c": {}},
        "functions": {"other": {}, sdk.KEPT_FUNCTIONS[1]: {"outputs": {"$ref": "#/types/b"}}},
        "resources": {"r": {"properties": {"description": {"type": "string"}}}},
    }
    assert sdk.reduce(full) == {
        "types": {"a": {}, "b": {"$ref": "#/types/a"}},
        "functions": {sdk.KEPT_FUNCTIONS[1]: {"outputs": {"$ref": "#/types/b"}}},
        "resources": {"r": {"properties": {"description": {"type": "string"}}}},
    }
