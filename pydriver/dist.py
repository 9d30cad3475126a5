"""Build what a release consists of, and check it: run by ``make dist`` and ``make release-check``.

Everything goes to pydriver/dist: source distribution and wheel of the driver, without models; those
of package pgrecall-models; Debian packages of the extension for each version of PostgreSQL; and,
by ``make pgxn`` and ``make sbom``, the archive for PGXN and the bill of materials. checksums writes
SHA256SUMS of all. Each is built in a copy of the files that git has, at the time of the commit
(SOURCE_DATE_EPOCH), so that two builds have equal bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from pgrecall.server import build

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = HERE / "pgrecall"
EXTENSION = PACKAGE / "extension"
DIST = HERE / "dist"
MODELS = {"embedder": "*", "reranker": "*", "minilm": "[!w]*"}
"""Directories of models, and which of their files are released."""
LARGEST_DRIVER = 1_000_000
POSTGRES = (16, 17, 18)
ALONE = """
import importlib.metadata as m, sys
import pgrecall
from pgrecall.server.schema import script
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.rerankers import DEFAULT_RERANKER
from pgrecall.inference import packaged
for name in ("0.1.0-{}.upgrade", "{}.install"):
    assert len(script(f"pgrecall-{name.format(pgrecall.__version__)}.sql")) > 100_000
needs = [n for n in m.requires("pgrecall") if "extra ==" not in n]
assert [n.split("[")[0] for n in needs] == ["psycopg"], needs
has = (packaged.directory("embedder") / "model.onnx").is_file()
assert has == (sys.argv[1] == "with"), has
"""


class LeftOutError(Exception):
    """What cannot be checked here, and why."""


def version() -> str:
    """Return the version of the checkout."""
    text = (PACKAGE / "_version.py").read_text(encoding="utf-8")
    [found] = re.findall(r'"([0-9.]+)"', text)
    return str(found)


def commit_time() -> str:
    """Return the time of the commit, in seconds: that of all files that are built."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    found = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return found or "1577836800"


def environment() -> dict[str, str]:
    """Return the variables of a build."""
    return os.environ | {"SOURCE_DATE_EPOCH": commit_time()}


def _ignored(_: str, names: Sequence[str]) -> set[str]:
    return {n for n in names if n == "__pycache__" or n.endswith((".pyc", ".egg-info"))}


def _hatch(project: Path, target: Path) -> None:
    for kind in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
        subprocess.run(command, cwd=project, env=environment(), check=True, capture_output=True)


def driver(target: Path) -> None:
    """Build the driver alone, with the scripts that it installs."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "pydriver")
        project.mkdir()
        for name in ("pyproject.toml", "README.md", "hatch_build.py"):
            shutil.copy2(HERE / name, project)
        shutil.copytree(PACKAGE, project / "pgrecall", ignore=_ignored)
        shutil.copy2(ROOT / "LICENSE", project)
        for name in MODELS:
            shutil.rmtree(project / "pgrecall" / name)
        # Those that a server reads come by PGXN, Debian packages and make install.
        scripts = project / "pgrecall" / "extension"
        for file in scripts.glob("pgrecall--*.sql"):
            file.unlink()
        build.pack(scripts)
        _hatch(project, target)


def models(target: Path) -> None:
    """Build the package of the models."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "models")
        shutil.copytree(HERE / "models", project, ignore=_ignored)
        shutil.copy2(ROOT / "LICENSE", project)
        package = project / "pgrecall_models"
        package.mkdir()
        (package / "__init__.py").write_text(
            f'"""The models of pgrecall."""\n\n__version__ = "{version()}"\n', encoding="utf-8"
        )
        for name, files in MODELS.items():
            (package / name).mkdir()
            for file in (PACKAGE / name).glob(files):
                shutil.copy2(file, package / name)
        _hatch(project, target)


def deb(target: Path) -> None:
    """Build a Debian package of the extension for each version of PostgreSQL.

    Nothing is compiled, so that dpkg-deb alone does: no server and no headers are needed.
    """
    for major in POSTGRES:
        name = f"postgresql-{major}-pgrecall"
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory, name)
            files = root / f"usr/share/postgresql/{major}/extension"
            files.mkdir(parents=True)
            for file in [EXTENSION / "pgrecall.control", *EXTENSION.glob("pgrecall--*.sql")]:
                shutil.copyfile(file, files / file.name)
            doc = root / "usr/share/doc" / name
            doc.mkdir(parents=True)
            shutil.copyfile(ROOT / "LICENSE", doc / "copyright")
            control = root / "DEBIAN"
            control.mkdir()
            size = sum(file.stat().st_size for file in files.iterdir()) // 1024
            (control / "control").write_text(
                f"Package: {name}\nVersion: {version()}-1\nArchitecture: all\n"
                f"Maintainer: pgrecall <pgrecall@localhost>\nSection: database\n"
                f"Priority: optional\nInstalled-Size: {size}\n"
                f"Depends: postgresql-{major}, postgresql-{major}-pgvector (>= 0.8)\n"
                "Description: the memory of AI agents, for PostgreSQL\n"
                " Hybrid recall in one SQL call: by meaning, words, relations, time and name.\n",
                encoding="utf-8",
            )
            for path in [root, *root.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
            subprocess.run(
                ["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)],
                env=environment(),
                check=True,
                capture_output=True,
            )


def checksums(target: Path) -> None:
    """Write SHA256SUMS of all that is there."""
    files = sorted(f for f in target.iterdir() if f.is_file() and f.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (target / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def installed(target: Path, with_models: bool) -> None:
    """Install the wheels where nothing else is, with psycopg alone, and use them."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        python = Path(directory, "bin", "python")
        names = ["pgrecall", *(["pgrecall_models"] if with_models else [])]
        wheels = [str(target / f"{name}-{version()}-py3-none-any.whl") for name in names]
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *wheels], check=True)
        word = "with" if with_models else "without"
        subprocess.run([str(python), "-c", ALONE, word], cwd=directory, check=True)


def sizes(target: Path) -> str:
    """Check that the driver is small and has no models."""
    wheel = target / f"pgrecall-{version()}-py3-none-any.whl"
    size = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        onnx = [name for name in archive.namelist() if name.endswith(".onnx")]
    if size > LARGEST_DRIVER or onnx:
        raise SystemExit(f"{wheel.name} has {size:,} bytes and the models {onnx}")
    return f"{size:,} bytes"


def reproducible(target: Path, builds: Sequence[Callable[[Path], None]]) -> str:
    """Build again, and compare every byte."""
    with tempfile.TemporaryDirectory() as directory:
        again = Path(directory)
        for make_again in builds:
            make_again(again)
        names = sorted(file.name for file in again.iterdir())
        different = [n for n in names if (again / n).read_bytes() != (target / n).read_bytes()]
    if different:
        raise SystemExit(f"built twice, these differ: {', '.join(different)}")
    return f"{len(names)} files with equal bytes"


def make(name: str) -> str:
    """Run another target of the Makefile."""
    subprocess.run(["make", "-s", "-C", str(ROOT), name], check=True, capture_output=True)
    return ""


def pytest(*words: str) -> str:
    """Run tests; returns their last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *words]
    variables = os.environ | {"PGRECALL_DEBIAN": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout[-2000:])
    *lines, last = done.stdout.strip().splitlines()
    if "passed" not in last:
        raise LeftOutError(next((line for line in lines if line.startswith("SKIPPED")), last))
    return last


def check(target: Path) -> int:
    """Build and check everything; prints one table."""
    os.environ["SOURCE_DATE_EPOCH"] = commit_time()  # also where somebody commits meanwhile
    builds = [driver, models, *([deb] if shutil.which("dpkg-deb") else [])]

    def packages() -> None:
        if deb not in builds:
            raise LeftOutError("dpkg-deb is not here")
        deb(target)

    house, adapters = "tests/house", "tests/adapters"
    steps: list[tuple[str, Callable[[], object]]] = [
        ("driver: sdist and wheel", lambda: driver(target)),
        ("driver: under 1 MB, no models", lambda: sizes(target)),
        ("models: sdist and wheel", lambda: models(target)),
        ("installed alone", lambda: installed(target, False)),
        ("installed with the models", lambda: installed(target, True)),
        ("archive for PGXN", lambda: make("pgxn")),
        ("Debian packages", packages),
        ("on Debian's own server", lambda: pytest(f"{house}/test_debian.py")),
        ("image, compose file, manifests", lambda: pytest(f"{house}/test_distribution.py")),
        ("bill of materials", lambda: make("sbom")),
        ("two builds are equal", lambda: reproducible(target, builds)),
        ("checksums", lambda: checksums(target)),
        (
            "site: links, blocks, pictures",
            lambda: f"{make('site')}{pytest(f'{house}/test_site.py')}",
        ),
        ("tutorials", lambda: pytest(f"{adapters}/test_tutorials.py")),
        (
            "upgrade from each release",
            lambda: pytest("tests/state/test_upgrade.py", "tests/state/test_freeze.py"),
        ),
        ("what is promised stable", lambda: pytest(f"{house}/test_stable.py")),
        ("workflow, templates, links", lambda: pytest(f"{house}/test_community.py")),
    ]
    failed = 0
    for name, step in steps:
        start = time.monotonic()
        try:
            status, said = "good", str(step() or "")
        except LeftOutError as reason:
            status, said = "left out", str(reason)
        except (SystemExit, OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", b"") or b""
            more = output.decode(errors="replace") if isinstance(output, bytes) else output
            status, said, failed = "FAILED", f"{error} {more[-500:]}", failed + 1
        seconds = time.monotonic() - start
        print(f"{name:32} {status:9} {seconds:6.1f} s  {said}", flush=True)
    return 1 if failed else 0


def main() -> int:
    """Build what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("driver", "models", "deb", "checksums", "check"))
    parser.add_argument("--target", type=Path, default=DIST)
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    work: dict[str, Callable[[Path], int | None]] = {
        "driver": driver, "models": models, "deb": deb, "checksums": checksums, "check": check,
    }  # fmt: skip
    return work[options.what](options.target) or 0


if __name__ == "__main__":
    sys.exit(main())
