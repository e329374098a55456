"""What hnefi depends on: reasons, licences, a list for releases; an audit that never says more than it knows."""

from __future__ import annotations

import importlib.util
import json
import re
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "dependencies.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hnefi_dependencies", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


dependencies = load()


def test_every_dependency_has_a_reason() -> None:
    section = (ROOT / "docs" / "decisions.md").read_text().partition("\n## Dependencies\n")[2]
    reasons: dict[str, set[str]] = {}
    for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]{10,} \|$", section, re.MULTILINE)[1:]:
        for name in row[0].split(", "):
            reasons[name] = set(row[1].split(", "))
    wanted: dict[str, set[str]] = {}
    for origin, lines in dependencies.lists().items():
        for line in lines:
            wanted.setdefault(Requirement(line).name, set()).add(origin)
    assert reasons == wanted


def test_the_page_of_licences_knows_what_is_installed() -> None:
    """Of the core list and the development tools; a version that was not looked at may have another licence."""
    text = (ROOT / "docs" / "licences.md").read_text()
    listed = {
        row[0]: row for row in re.findall(r"^\| (\S+) \| (\S+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    }
    wanted = dependencies.lists()
    for part in dependencies.parts({"core": wanted["core"], "dev": wanted["dev"]}).values():
        assert part.name in listed, f"{part.name}: expected in docs/licences.md (make licences)"
        if part.version == listed[part.name][1]:
            assert part.licence == listed[part.name][2], part.name
    assert "not stated" not in text


def test_the_list_for_releases_is_closed() -> None:
    bom = json.loads(json.dumps(dependencies.sbom()))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    known = {component["bom-ref"] for component in bom["components"]} | {
        bom["metadata"]["component"]["bom-ref"]
    }
    assert len(known) == len(bom["components"]) + 1
    named = {entry["ref"] for entry in bom["dependencies"]}
    assert named == known
    assert {ref for entry in bom["dependencies"] for ref in entry["dependsOn"]} <= known
    names = {component["name"] for component in bom["components"]}
    assert {Requirement(line).name.replace("_", "-") for line in dependencies.lists()["core"]} <= names
    assert {"llvmlite", "paho-mqtt"} <= names


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 0, "nothing known against the"),
        ("echo 'numpy 1.0 CVE-1 2.0'; exit 1", 1, "CVE-1"),
        (
            "echo 'requests.exceptions.ConnectionError: no route' >&2; exit 1",
            3,
            "NOT DONE: the database of known",
        ),
    ],
)
def test_an_audit_says_what_it_knows(
    script: str, status: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "fake-audit"
    tool.write_text(f'#!/bin/sh\ngrep -q "^numba==" "$2" || exit 9\n{script}\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    assert dependencies.audit([str(tool)]) == status
    out, err = capfd.readouterr()
    assert said in out + err


@pytest.mark.process
def test_an_audit_without_its_tool_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    assert dependencies.audit(["/no/such/audit"]) == dependencies.UNREACHABLE
    assert "cannot start '/no/such/audit'" in capfd.readouterr().err
