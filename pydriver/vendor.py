"""Take the scripts of others that the console uses from the npm registry: by hand, once a version.

``pgrecall/console/static/vendor/packages.json`` pins name, version and the hash of each package and
of each file that is taken from it. The files, half a megabyte, are in git: nobody who installs or
tests pgrecall needs npm, and the console loads nothing from elsewhere.

    python pydriver/vendor.py           # checks the files against their hashes
    python pydriver/vendor.py --fetch   # takes them from the packages again, by npm pack
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

DIRECTORY = Path(__file__).parent / "pgrecall" / "console" / "static" / "vendor"
PINS = DIRECTORY / "packages.json"


def wrong_files() -> list[str]:
    """List the files that are not those that are pinned, and those that nothing pins."""
    pinned = {
        name: file["sha256"]
        for package in json.loads(PINS.read_text())
        for name, file in package["files"].items()
    }
    there = {path.name: path for path in DIRECTORY.iterdir() if path != PINS}
    return sorted(
        name
        for name in pinned.keys() | there.keys()
        if name not in there or pinned.get(name) != _sha256(there[name].read_bytes())
    )


def fetch() -> None:
    """Take each file out of its package, whose hash is checked, and write it.

    Raises:
        ValueError: a package is not the one that is pinned.

    """
    for package in json.loads(PINS.read_text()):
        with TemporaryDirectory() as directory:
            what = f"{package['name']}@{package['version']}"
            npm = ["npm", "pack", "--silent", "--pack-destination", directory, what]
            subprocess.run(npm, check=True)
            [archive] = Path(directory).iterdir()
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if package["integrity"] != f"sha512-{digest}":
                raise ValueError(f"{what} has the hash sha512-{digest}, another one than is pinned")
            with tarfile.open(archive) as packed:
                for name, file in package["files"].items():
                    content = packed.extractfile(f"package/{file['from']}")
                    assert content is not None
                    (DIRECTORY / name).write_bytes(content.read())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    if "--fetch" in sys.argv[1:]:
        fetch()
    if wrong := wrong_files():
        sys.exit(f"not as pinned in {PINS.name}: {', '.join(wrong)}")
