"""The package works away from its checkout: it brings the SQL that it installs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import servers
from pgrecall._version import __version__
from pgrecall.server import build

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling is not installed: pip install 'pgrecall[dev]'",
)

RECALL = """
import json, sys
import pgrecall
from pgrecall import Recall, schema
from pgrecall.server import build
import psycopg

with psycopg.connect(sys.argv[1]) as connection:
    result = schema.migrate(connection)
    connection.execute("select pgrecall.create_bank('diary')")
    facts = [{"text": "Maya moved the deploy window to Tuesday."}]
    connection.execute("select pgrecall.retain('diary', %s)", [json.dumps(facts)])
    rows = connection.execute(
        "select text from pgrecall.hybrid_recall(bank => 'diary', query => 'deploy window')"
    ).fetchall()
print(json.dumps([pgrecall.__file__, build.is_checkout(), result.after, rows]))
"""

# The script that the package installs, wherever its function lives.
COMMAND = """
import sys
from importlib.metadata import entry_points

[command] = entry_points(group="console_scripts", name="pgrecall")
sys.exit(command.load()())
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git holds, as a fresh clone has it: nothing that make built."""
    target = tmp_path_factory.mktemp("clone") / "pgrecall"
    ignored = shutil.ignore_patterns("extension", "__pycache__", "*.egg-info", "dist")
    for name in ("sql", "migrations", "pydriver"):
        shutil.copytree(build.ROOT / name, target / name, ignore=ignored)
    return target


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "-w", directory, checkout / "pydriver")
    [path] = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def outside(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of a new environment with the wheel in it; dependencies are those of the tests."""
    environment = tmp_path_factory.mktemp("outside")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    pip("install", "--no-deps", "--no-index", "--target", packages, wheel)
    # Behind the wheel: an editable install of a checkout, which comes by a .pth file, is not read.
    (packages / "dependencies.pth").write_text(str(Path(psycopg.__file__).parents[1]))
    python = environment / "bin" / "python"
    yield python
    shutil.rmtree(environment)


def pip(*arguments: str | Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr


def run(python: Path, *arguments: str) -> str:
    """Run the Python outside, away from the repository."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [python, *arguments],
        cwd=python.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_wheel_holds_the_scripts_of_its_sql(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            Path(name).name: archive.read(name).decode()
            for name in archive.namelist()
            if name.startswith("pgrecall/extension/")
        }

    assert packed == build.assemble()


def test_a_wheel_holds_the_weights_of_the_embedder(wheel: Path) -> None:
    weights = build.PACKAGE / "minilm" / "weights"
    if not weights.is_dir():
        pytest.skip("no weights in this checkout: an installation from it gets them")

    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    expected = [path for path in weights.rglob("*") if path.is_file()]
    assert packed >= {str(path.relative_to(build.PACKAGE.parent)) for path in expected}
    assert packed >= {"pgrecall/minilm/model.onnx", "pgrecall/minilm/weights/model.safetensors"}


def test_a_source_distribution_builds_the_same_wheel(
    checkout: Path, wheel: Path, tmp_path: Path
) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path],
        cwd=checkout / "pydriver",
        check=True,
        capture_output=True,
    )
    [source] = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [unpacked] = (tmp_path / "source").iterdir()

    pip("wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "again", unpacked)

    [again] = (tmp_path / "again").glob("*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())


def test_a_build_without_scripts_and_without_sql_fails(checkout: Path, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("extension")
    shutil.copytree(checkout / "pydriver", tmp_path / "pydriver", ignore=ignored)

    result = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"],
        cwd=tmp_path / "pydriver",
        capture_output=True,
        text=True,
    )

    assert result.returncode != 0
    assert "pgrecall.control is missing" in result.stdout + result.stderr


def test_an_installed_package_migrates_and_recalls(outside: Path, empty_database: str) -> None:
    file, is_checkout, after, rows = json.loads(run(outside, "-c", RECALL, empty_database))

    assert str(outside.parents[1]) in file
    assert not is_checkout
    assert after == __version__
    assert rows == [["Maya moved the deploy window to Tuesday."]]


def test_an_installed_package_upgrades(
    outside: Path, server: servers.Server, empty_database: str
) -> None:
    servers.run_script(server, empty_database, servers.frozen_script("0.1.0"))

    said = run(outside, "-c", COMMAND, "migrate", "--dsn", empty_database)

    assert said == f"upgraded pgrecall from 0.1.0 to {__version__}\n"
