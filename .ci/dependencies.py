#!/usr/bin/env python3
"""What hnefi depends on: known weaknesses, licences, and the list that goes with a release.

    dependencies.py audit                the versions of uv.lock against the databases of PyPI or OSV, by pip-audit
    dependencies.py licences --out FILE  docs/licences.md, from the metadata of what is installed
    dependencies.py sbom --out FILE      a CycloneDX list of what an installed hnefi consists of

Runs in the environment of `make setup`; nothing here is installed with hnefi.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
UNREACHABLE = 3
"""The exit status of an audit that could not ask anybody."""
NETWORK = (
    "ConnectionError",
    "connection",
    "Max retries",
    "ProxyError",
    "timed out",
    "name resolution",
    "SSLError",
)


@dataclass
class Part:
    """An installed distribution that hnefi needs, and for which of its lists (`core`, or the names of extras)."""

    name: str
    version: str
    licence: str
    wanted_by: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)


def lists() -> dict[str, list[str]]:
    """The requirements of hnefi by list: `core` first, then the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def licence(found: metadata.Distribution) -> str:
    """The licence as the metadata state it, an SPDX expression where there is one."""
    said = found.metadata
    words = said.get("License-Expression") or ""
    if not words:
        text = (said.get("License") or "").strip()
        words = text if "\n" not in text and len(text) <= 60 and text != "UNKNOWN" else ""
    if not words:
        classifiers = [c for c in said.get_all("Classifier") or () if c.startswith("License ::")]
        words = ", ".join(c.rpartition(" :: ")[2] for c in classifiers)
    return words or "not stated"


def parts(wanted: dict[str, list[str]]) -> dict[str, Part]:
    """All that is installed of these lists, with what it needs in turn."""
    found: dict[str, Part] = {}

    def visit(requirement: Requirement, origin: str) -> str | None:
        try:
            installed = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            return None
        key = canonicalize_name(requirement.name)
        part = found.setdefault(key, Part(key, installed.version, licence(installed)))
        if origin not in part.wanted_by:
            part.wanted_by.add(origin)
            extras = requirement.extras or {""}
            for line in installed.requires or ():
                inner = Requirement(line)
                if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                    needed = visit(inner, origin)
                    if needed:
                        part.needs.add(needed)
        return key

    for origin, lines in wanted.items():
        for line in lines:
            visit(Requirement(line), origin)
    return found


def table(found: Iterable[Part]) -> Iterator[str]:
    """The rows of docs/licences.md."""
    for part in sorted(found, key=lambda part: ("core" not in part.wanted_by, part.name)):
        whom = ["core"] if "core" in part.wanted_by else sorted(part.wanted_by)
        yield f"| {part.name} | {part.version} | {part.licence} | {', '.join(whom)} |"


def licences_page() -> str:
    """docs/licences.md."""
    return "\n".join(
        [
            "# Licences of what hnefi uses",
            "",
            "hnefi itself is under the [MIT licence](../LICENSE). It contains no copies of the packages",
            "below; pip or uv installs them. `make licences` writes this page from the metadata of the",
            "packages that `make setup` installs, and a test compares them. `core` packages come with every",
            "installation, the others with the extra of that name (`pip install 'hnefi[plots]'`); the",
            "larger extras (`train`, `dask`, `ray`, `oracle`, `web`) are listed where they are installed.",
            "Why each is used: [decisions.md](decisions.md#dependencies).",
            "",
            "| package | version looked at | licence | for |",
            "|---|---|---|---|",
            *table(parts(lists()).values()),
            "",
        ]
    )


def sbom() -> dict[str, object]:
    """What an installed hnefi consists of, in CycloneDX 1.5: the core list, with all that it needs."""
    from hnefi.engine.about import VERSION

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = parts({"core": project["dependencies"]})

    def reference(part: Part) -> str:
        return f"pkg:pypi/{part.name}@{part.version}"

    ours = f"pkg:pypi/{project['name']}@{VERSION}"
    direct = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": project["name"],
                "version": VERSION,
                "purl": ours,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": reference(part),
                "name": part.name,
                "version": part.version,
                "purl": reference(part),
                "licenses": [{"license": {"name": part.licence}}],
            }
            for part in sorted(found.values(), key=lambda part: part.name)
        ],
        "dependencies": [
            {"ref": ours, "dependsOn": sorted(reference(found[name]) for name in direct if name in found)},
            *(
                {"ref": reference(part), "dependsOn": sorted(reference(found[name]) for name in part.needs)}
                for part in sorted(found.values(), key=lambda part: part.name)
            ),
        ],
    }


def locked() -> list[str]:
    """`name==version` of everything in uv.lock but hnefi."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return sorted(f"{p['name']}=={p['version']}" for p in packages if "registry" in p["source"])


def audit(command: list[str]) -> int:
    """Ask pip-audit about the lock file; 0 nothing known, 1 weaknesses found, 3 nobody could be asked."""
    wanted = locked()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "locked.txt"
        file.write_text("\n".join(wanted) + "\n")
        try:
            done = subprocess.run(
                [*command, "--requirement", str(file), "--no-deps", "--disable-pip", "--progress-spinner", "off"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        except OSError as error:
            said = f"cannot start {command[0]!r}: {error}: expected pip-audit (pip install pip-audit)"
            print(f"audit: {said}", file=sys.stderr)
            return UNREACHABLE
    if done.returncode and any(word in done.stderr for word in NETWORK):
        last = done.stderr.strip().splitlines()[-1]
        print(
            f"audit: NOT DONE: the database of known weaknesses cannot be reached from here ({last[:200]}): run it "
            f"where the network is; nothing is known about the {len(wanted)} packages of uv.lock",
            file=sys.stderr,
        )
        return UNREACHABLE
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    if not done.returncode:
        print(f"audit: nothing known against the {len(wanted)} packages of uv.lock")
    return done.returncode


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["audit", "licences", "sbom"])
    parser.add_argument("--out", type=Path, help="the file to write (standard output)")
    parser.add_argument("--tool", default="pip-audit", help="what audit runs (pip-audit beside this Python)")
    options = parser.parse_args(words)
    if options.what == "audit":
        beside = Path(sys.executable).with_name(options.tool)
        return audit([str(beside) if beside.is_file() else options.tool])
    text = licences_page() if options.what == "licences" else json.dumps(sbom(), indent=1) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
