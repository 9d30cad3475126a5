"""The Debian package is what dh_make_pgxs makes, and works on Debian's own server.

A Debian of its own, made once by debootstrap and kept in /var/cache/pgrecall, holds that server,
its pgvector and the tools of packagers; it is entered by chroot. That takes minutes the first time,
so it happens only where PGRECALL_DEBIAN is set: make release-check sets it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pgrecall.server import build

SUITE, MAJOR = "trixie", 17
CACHE = Path("/var/cache/pgrecall")
PACKAGES = (
    f"postgresql-{MAJOR} postgresql-{MAJOR}-pgvector python3 make dpkg-dev debhelper"
    " postgresql-server-dev-all"
)
INSTALL = f"""
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends {PACKAGES}
"""
BUILD = """
cd /build/source
tar xf /build/source.tar
dh_make_pgxs -n pgrecall -v {version} </dev/null
sed -i 's/--with pgxs$/--with pgxs_loop/' debian/rules
DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -d -us -uc
"""
USE = f"""
export DEBIAN_FRONTEND=noninteractive
stop="/usr/lib/postgresql/{MAJOR}/bin/pg_ctl stop -m fast -D /var/lib/postgresql/{MAJOR}/main"
apt-get install -qq -y --no-install-recommends /build/shipped.deb
pg_ctlcluster {MAJOR} main start -- -o '-c listen_addresses='
trap 'su postgres -c "$stop"; apt-get purge -qq -y postgresql-{MAJOR}-pgrecall' EXIT
su postgres -c 'psql -X -v ON_ERROR_STOP=1 -f /build/use.sql'
"""
USED = """
drop database if exists memory;
create database memory;
\\c memory
create extension pgrecall cascade;
select pgrecall_setup.install();
select pgrecall.create_bank('team');
select is_new from pgrecall.retain('team', '[{"text": "Maya leads Atlas."}]');
select text from pgrecall.hybrid_recall('team', 'Who leads Atlas?');
"""


class Debian:
    """A folder with a Debian in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, script: str) -> str:
        # TMPDIR and the like are of the machine around it.
        path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        done = subprocess.run(
            ["chroot", str(self.root), "bash", "-euo", "pipefail", "-c", script],
            env=path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def debian() -> Debian:
    """Make a Debian, once."""
    if not os.environ.get("PGRECALL_DEBIAN"):
        pytest.skip("PGRECALL_DEBIAN is not set: make release-check sets it")
    if os.geteuid() != 0:
        pytest.skip("only root can enter another Debian")
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("there is no apt-get here")
    root, done = CACHE / SUITE, CACHE / f"{SUITE}.done"
    if not done.exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as folder:
            get = ["apt-get", "download", "debootstrap"]
            got = subprocess.run(get, cwd=folder, capture_output=True, text=True, check=False)
            if got.returncode:
                pytest.skip(f"apt-get cannot download debootstrap: {got.stderr.strip()[-200:]}")
            [package] = Path(folder).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
            made = subprocess.run(
                [f"{folder}/usr/sbin/debootstrap", "--variant=minbase", SUITE, str(root)],
                env=os.environ | {"DEBOOTSTRAP_DIR": f"{folder}/usr/share/debootstrap"},
                capture_output=True,
                text=True,
                check=False,
            )
        if made.returncode:
            pytest.skip(f"debootstrap cannot make {SUITE}: {made.stdout.strip()[-200:]}")
        Debian(root).run(INSTALL)
        done.touch()
    return Debian(root)


@pytest.fixture(scope="module")
def shipped(debian: Debian, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package that make deb makes, in /build of the Debian, beside the source."""
    spec = importlib.util.spec_from_file_location("pgrecall_dist", build.ROOT / "pydriver/dist.py")
    assert spec
    assert spec.loader
    dist: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)
    build.write(build.assemble())
    made = tmp_path_factory.mktemp("deb")
    dist.deb(made)
    folder = debian.root / "build"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "source").mkdir(parents=True)
    [package] = made.glob(f"postgresql-{MAJOR}-*.deb")
    shutil.copy(package, folder / "shipped.deb")
    subprocess.run(
        ["git", "archive", "--output", folder / "source.tar", "HEAD"], cwd=build.ROOT, check=True
    )
    (folder / "use.sql").write_text(USED)
    yield folder
    shutil.rmtree(folder)


def contents(package: Path, target: Path) -> dict[str, bytes]:
    subprocess.run(["dpkg-deb", "-x", package, target], check=True)
    files = target / "usr" / "share" / "postgresql" / str(MAJOR) / "extension"
    return {file.name: file.read_bytes() for file in files.iterdir()}


def test_dh_make_pgxs_makes_a_package_of_the_same_files(
    debian: Debian, shipped: Path, tmp_path: Path
) -> None:
    # It packs what is committed.
    for path in ("sql", "migrations", "pydriver/pgrecall/server/build.py"):
        changed = subprocess.run(
            ["git", "status", "--porcelain", path], cwd=build.ROOT, capture_output=True, check=True
        )
        if changed.stdout:
            pytest.skip(f"{path} has changes that are not committed")

    debian.run(BUILD.format(version=build.version()))

    [package] = shipped.glob(f"postgresql-{MAJOR}-pgrecall_*.deb")
    assert contents(package, tmp_path / "theirs") == contents(
        shipped / "shipped.deb", tmp_path / "ours"
    )


def test_the_package_works_on_debians_own_server(debian: Debian, shipped: Path) -> None:
    assert shipped.exists()

    said = debian.run(USE)

    assert f"installed pgrecall {build.version()}" in said
    assert "Maya leads Atlas." in said
