"""Put the assembled SQL scripts into the package whenever it is built.

The scripts are not in git: ``pgrecall/build.py`` makes them of ``sql/`` and ``migrations/``. In a
checkout, this hook runs it before anything is packed. Where those directories are not beside the
package, it is being built from a source distribution, which carries the scripts: they are packed
as they are. A wheel without them could install nothing, so a build that finds none fails.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ScriptsHook(BuildHookInterface):  # type: ignore[misc]
    """The build hook that hatchling finds in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Assemble the scripts in a checkout, and see to it that there are some.

        Raises:
            FileNotFoundError: there are neither scripts nor what they are made of.

        """
        package = Path(self.root) / "pgrecall"
        build = _load(package / "build.py")
        if build.is_checkout():
            build.write(build.assemble())
        control = package / "extension" / "pgrecall.control"
        if not control.is_file():
            raise FileNotFoundError(f"{control} is missing, and so are sql/ and migrations/")


def _load(path: Path) -> Any:
    """Load build.py alone: the rest of the package needs psycopg."""
    spec = importlib.util.spec_from_file_location("pgrecall_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
