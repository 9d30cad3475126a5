"""What a release consists of: small, apart, the same when it is built again, and enough."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import servers
from pgrecall.server import build
from servers import Server

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling is not installed: pip install 'pgrecall[dev]'",
)
PROJECT = build.ROOT / "pydriver"


@pytest.fixture(scope="module")
def dist() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pgrecall_dist", PROJECT / "dist.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    build.write(build.assemble())
    return module


@pytest.fixture(scope="module")
def built(dist: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    dist.driver(target)
    return target


def test_the_driver_is_small_and_brings_no_model(dist: ModuleType, built: Path) -> None:
    assert dist.sizes(built).endswith("bytes")
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "pgrecall/extension/scripts.tar.xz" in names
    assert not any(name.endswith(".sql") for name in names if "/extension/" in name)
    assert not any(name.split("/")[1] in dist.MODELS for name in names)


def test_built_again_it_has_equal_bytes(dist: ModuleType, built: Path) -> None:
    assert dist.reproducible(built, [dist.driver]) == "2 files with equal bytes"


def test_alone_it_says_how_to_get_the_models(built: Path, tmp_path: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "from pgrecall import EmbedderUnavailable\n"
        "from pgrecall.embedders import DEFAULT_EMBEDDER\n"
        "try:\n    list(DEFAULT_EMBEDDER.embed(['x']))\n"
        "except EmbedderUnavailable as error:\n    print(error.hint)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("Run: pip install --force-reinstall --no-deps pgrecall-models")


def test_alone_it_upgrades_installs_and_examines(
    server: Server, empty_database: str, built: Path, tmp_path: Path
) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    servers.run_script(server, empty_database, servers.frozen_script("0.1.0"))

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pgrecall", *words],
            env=os.environ | {"PYTHONPATH": str(tmp_path), "PGRECALL_DSN": empty_database},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert f"pgrecall 0.1.0 to {build.version()}" in run("migrate", "--sql")
    assert build.version() in run("migrate")
    assert f"pgrecall: {build.version()}, as this package" in run("doctor")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not here")
def test_debian_packages_have_what_create_extension_reads(dist: ModuleType, tmp_path: Path) -> None:
    dist.deb(tmp_path)

    for major in dist.POSTGRES:
        [package] = tmp_path.glob(f"postgresql-{major}-*.deb")
        root = tmp_path / str(major)
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
        files = root / f"usr/share/postgresql/{major}/extension"
        for file in files.iterdir():
            assert file.read_bytes() == (build.EXTENSION / file.name).read_bytes()
        assert {"pgrecall.control", f"pgrecall--{dist.version()}.sql"} <= {
            file.name for file in files.iterdir()
        }
        field = subprocess.run(
            ["dpkg-deb", "--field", package, "Depends"], check=True, capture_output=True, text=True
        )
        assert f"postgresql-{major}-pgvector" in field.stdout
