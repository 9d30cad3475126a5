"""What the tests and the packaged models are made of: a lock file with hashes, an SBOM, an audit.

``make lock`` writes requirements.lock: each package of the test environment as it is installed,
with the hash of its file for this platform. torch is left out: which build of it fits depends on
the package index, and make installs it alone. ``make sbom`` writes the same packages, and the
models in the package, as CycloneDX; it needs no network. ``make audit`` looks the lock up in the
database of known vulnerabilities, and says so where that cannot be reached.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).with_name("requirements.lock")
PROJECT = Path(__file__).parents[2] / "pydriver"
SBOM = PROJECT / "dist" / "pgrecall.cdx.json"
MODELS = ("embedder", "reranker", "minilm")
ROOT = "pgrecall"
EXTRAS = frozenset({"all", "eval", "sentence-transformers", "dev"})  # as in the Makefile
UNLOCKED = {ROOT, "torch"}  # and what only torch needs, which comes with it
LINE = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) \\\n    --hash=sha256:(?P<hash>[0-9a-f]{64})"
)

HEADER = """\
# The packages that the tests ran with, for Python {python} on {system}: make lock.
# pip install --no-deps --only-binary :all: --require-hashes -r tests/house/requirements.lock

"""


def needed(name: str, extras: frozenset[str]) -> list[Requirement]:
    """What a package says that it needs here, with these extras."""
    if name == ROOT:  # as it stands in the checkout, whatever was installed
        reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        project = reader.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        optional = project["optional-dependencies"]
        texts = project["dependencies"] + [part for extra in extras for part in optional[extra]]
    else:
        texts = metadata.requires(name) or []
    said = [Requirement(text) for text in texts]
    return [
        requirement
        for requirement in said
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in extras | {""})
    ]


def packages() -> dict[str, str]:
    """Name and version of all that the tests need, torch and its needs left out."""
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    left = [(ROOT, EXTRAS)]
    while left:
        name, extras = left.pop()
        if (name, extras) in seen or (name != ROOT and name in UNLOCKED):
            continue
        seen.add((name, extras))
        if name != ROOT:
            found[name] = metadata.version(name)
        left += [
            (str(canonicalize_name(part.name)), frozenset(part.extras))
            for part in needed(name, extras)
        ]
    return dict(sorted(found.items()))


def lock() -> None:
    """Write the lock file. Each package is asked of the index that pip is set up for."""
    wanted = [f"{name}=={version}" for name, version in packages().items()]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    command += ["--ignore-installed", "--report", "-", *wanted]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    lines = [
        f"{canonicalize_name(part['metadata']['name'])}=={part['metadata']['version']} \\\n"
        f"    --hash=sha256:{part['download_info']['archive_info']['hashes']['sha256']}\n"
        for part in report["install"]
    ]
    system = f"{platform.system()} {platform.machine()}"
    header = HEADER.format(python=".".join(platform.python_version_tuple()[:2]), system=system)
    LOCK.write_text(header + "".join(sorted(lines)), encoding="utf-8")
    print(f"wrote {len(lines)} packages to {LOCK.name}")


def locked() -> dict[str, tuple[str, str]]:
    """Name, version and hash of each package in the lock file."""
    entries = re.split(r"^(?=[a-z])", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    matches = [LINE.fullmatch(entry.rstrip("\n")) for entry in entries]
    if not all(matches):
        raise ValueError(f"{LOCK.name} holds what no lock holds: make lock")
    return {match["name"]: (match["version"], match["hash"]) for match in matches if match}


def licence(name: str) -> str:
    """Return what a package says of its licence."""
    said: Any = metadata.metadata(name)
    classifiers = [
        line.rsplit(" :: ", 1)[-1]
        for line in said.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    # Some have the whole text there.
    short = (said.get("License") or "").strip().split("\n")[0][:80]
    return said.get("License-Expression") or "; ".join(classifiers) or short or "not stated"


def bill() -> dict[str, Any]:
    """The software bill of materials, as CycloneDX 1.5."""
    components: list[dict[str, Any]] = [
        {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
            "licenses": [{"license": {"name": licence(name)}}],
        }
        for name, (version, digest) in locked().items()
    ]
    for directory in MODELS:
        for file in sorted((PROJECT / ROOT / directory).rglob("*")):
            if file.suffix in (".onnx", ".json", ".safetensors"):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                components.append(
                    {
                        "type": "machine-learning-model",
                        "name": str(file.relative_to(PROJECT)),
                        "hashes": [{"alg": "SHA-256", "content": digest}],
                        "licenses": [{"license": {"name": f"see {directory}/MODEL_CARD.md"}}],
                    }
                )
    version = metadata.version(ROOT)
    subject = {
        "type": "library",
        "name": ROOT,
        "version": version,
        "purl": f"pkg:pypi/{ROOT}@{version}",
        "licenses": [{"license": {"id": "PostgreSQL"}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def sbom() -> None:
    """Write the bill of materials."""
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {len(bill()['components'])} components to {SBOM.relative_to(PROJECT.parent)}")


def audit() -> int:
    """Look the lock file up in the database of vulnerabilities; 1 where one is known."""
    with TemporaryDirectory() as directory:
        python = f"{directory}/bin/python"
        for command in (
            [sys.executable, "-m", "venv", directory],
            [python, "-m", "pip", "install", "--quiet", "pip-audit"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"skipped: pip-audit cannot be installed here: {done.stderr.strip()[-300:]}")
                return 0
        command = [python, "-m", "pip_audit", "--disable-pip", "--format", "json", "-r", str(LOCK)]
        done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        print(f"skipped: no database of vulnerabilities is in reach: {done.stderr.strip()[-300:]}")
        return 0
    return told(json.loads(done.stdout)["dependencies"])


def told(packages: list[dict[str, Any]]) -> int:
    """Print what an audit found; 1 where a vulnerability is known."""
    unknown = [package for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        print(f"skipped: none of the packages was found: {unknown[0]['skip_reason']}")
        return 0
    found = [
        f"{package['name']} {package['version']}: {hole['id']},"
        f" mended in {', '.join(hole['fix_versions']) or 'no release'}"
        for package in packages
        for hole in package.get("vulns", ())
    ]
    print("\n".join([*found, f"{len(packages) - len(unknown)} of {len(packages)} were looked up"]))
    return 1 if found else 0


if __name__ == "__main__":
    actions: dict[str, Callable[[], int | None]] = {"lock": lock, "sbom": sbom, "audit": audit}
    sys.exit(actions[sys.argv[1]]())
