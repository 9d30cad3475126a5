"""Assemble sql/ and migrations/ into the scripts that all install routes run.

This works only in a checkout; an installed package has the assembled scripts in ``extension/``. It
uses only the standard library, so that ``make install`` runs on a database server that has just
Python.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]
SQL = ROOT / "sql"
MIGRATIONS = ROOT / "migrations"
FRAME = MIGRATIONS / "frame"  # the frame of every upgrade script and of the extension
EXTENSION = PACKAGE / "extension"
PACKED = "scripts.tar.xz"  # the plain scripts, in extension/ of a released package
VERSION_FILES = (PACKAGE / "_version.py", SQL / "values" / "version.sql")
# Manifests for registries, which also state the version.
MANIFESTS = (ROOT / "pydriver" / "server.json", MIGRATIONS / "META.json")

ORDER = "order.txt"  # in sql/, the files in the order in which they run
STATE = "state"  # the room that only migrations change; upgrades run all other files again
VERSION = re.compile(r"\d+\.\d+\.\d+")

# Tokens that may contain a semicolon, and the semicolon.
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|(\$\w*\$).*?\1|'(?:[^']|'')*'|"(?:[^"]|"")*"|;""", re.DOTALL
)

CONTROL = """\
comment = 'the memory of AI agents: hybrid recall in one call'
default_version = '{version}'
requires = 'vector'
relocatable = false
schema = 'pg_catalog'
superuser = false
"""

NEXT = """\
-- What the next release changes in the state (sql/state/) of a database that has the latest
-- release. Functions, views and comments are made anew by the upgrade itself; see README.md here.

-- phase: catalog

-- phase: build

-- phase: swap
"""

# The parts of a delta, in the order in which they run: catalog locks no table, build blocks writers
# but no readers, swap blocks everybody for milliseconds.
Phase = Literal["catalog", "build", "swap"]
PHASES: tuple[Phase, ...] = ("catalog", "build", "swap")


def is_checkout() -> bool:
    """Tell whether the package is in a checkout, with sql/ and migrations/ beside it."""
    return SQL.is_dir() and MIGRATIONS.is_dir()


def version() -> str:
    """Return the version being developed."""
    return _stated_version(VERSION_FILES[0])


def version_key(text: str) -> tuple[int, ...]:
    """Return the sort key of a version: ``0.10.0`` comes after ``0.9.0``."""
    return tuple(int(part) for part in text.split("."))


def frozen_releases() -> list[str]:
    """Return the versions that have a frozen script, oldest first."""
    names = (path.stem.removeprefix("pgrecall--") for path in MIGRATIONS.glob("pgrecall--*.sql"))
    return sorted((name for name in names if VERSION.fullmatch(name)), key=version_key)


def install_name(to: str) -> str:
    """Name the script that installs a version: plain SQL for psql and the driver."""
    return f"pgrecall-{to}.install.sql"


def upgrade_name(before: str, to: str) -> str:
    """Name the script that upgrades one version to another: plain SQL for psql and the driver."""
    return f"pgrecall-{before}-{to}.upgrade.sql"


def full_script() -> str:
    """Assemble the script that installs the current version into a database without pgrecall."""
    return _header(f"pgrecall {version()}, the whole schema") + "".join(map(_part, sources()))


def upgrade_script(before: str) -> str:
    """Assemble the script that upgrades the frozen release ``before`` to the current version."""
    deltas = [(path, phases(path.read_text(encoding="utf-8"))) for path in delta_paths(before)]
    swap = "".join(phase["swap"] for _, phase in deltas)
    early, late = _logic_around_swap(swap)
    begin = _frame("begin.sql").strip() + "\n\n"
    parts = [
        _header(f"pgrecall {before} to {version()}"),
        begin.replace("{before}", before)
        .replace("{public_functions}", _array(deltas, "drop public"))
        .replace("{columns}", _array(deltas, "drop column")),
    ]
    for number, (path, phase) in enumerate(deltas):
        parts.append(_delta(path, "catalog", phase["catalog"]))
        if number == 0:  # functions that indexes and columns use, which build may need
            parts += _state_statements("create or replace function")
            parts.append(_lock("current_setting('pgrecall.lock_first', true) = 'on'"))
        parts.append(_delta(path, "build", phase["build"]))
        if number == len(deltas) - 1:
            parts += early
        if statements(phase["swap"]):
            parts.append(_lock("true"))
        parts.append(_delta(path, "swap", phase["swap"]))
    parts += late
    parts.append(_part(FRAME / "end.sql"))
    return "".join(parts)


def setup_script(befores: Sequence[str]) -> str:
    """Assemble the extension's own script, which contains the scripts of the other routes.

    Args:
        befores: The frozen releases that it can upgrade.

    """
    now = version()
    branches = [("", full_script(), f"installed pgrecall {now}")]
    branches += [
        (before, upgrade_script(before), f"upgraded pgrecall from {before} to {now}")
        for before in befores
    ]
    return setup_of(now, branches)


def setup_of(version: str, branches: Sequence[tuple[str, str, str]]) -> str:
    """Assemble the extension's own script of a version.

    Args:
        version: The version.
        branches: For each version that may be installed, or none: the version, the script to run,
            and the text to return.

    """
    branch = (
        "    when '{before}' then\n"
        "      execute $script_{tag}${script}$script_{tag}$;\n"
        "      return '{done}';\n"
    )
    scripts = "".join(
        branch.format(before=before, tag=before.replace(".", "_"), script=script, done=done)
        for before, script, done in branches
    )
    frame = _frame("setup.sql")
    return _header(f"pgrecall {version}, the extension") + frame.replace(
        "{version}", version
    ).replace("{scripts}\n", scripts)


def assemble() -> dict[str, str]:
    """Assemble all files of the install routes, by name.

    Files that PostgreSQL reads for ``create extension`` have two dashes after the name.

    Raises:
        FileNotFoundError: this is not a checkout.

    """
    if not is_checkout():
        raise FileNotFoundError(
            f"{ROOT} is not a checkout of pgrecall: sql/ and migrations/ are missing. "
            "An installed package has its scripts already, in pgrecall/extension/."
        )
    now = version()
    befores = [name for name in frozen_releases() if version_key(name) < version_key(now)]
    setup = setup_script(befores)
    scripts = {
        "pgrecall.control": CONTROL.format(version=now),
        f"pgrecall--{now}.sql": setup,
        install_name(now): full_script(),
    }
    for before in befores:
        scripts[f"pgrecall--{before}--{now}.sql"] = setup
        scripts[upgrade_name(before, now)] = upgrade_script(before)
    return scripts


def delta_paths(before: str) -> list[Path]:
    """Return the files that change the state of a frozen release to the current one."""
    releases = frozen_releases()
    steps = pairwise(releases[releases.index(before) :])
    deltas = [MIGRATIONS / f"pgrecall--{a}--{b}.delta.sql" for a, b in steps]
    return [*deltas, MIGRATIONS / "next.sql"]


def phases(delta: str) -> dict[Phase, str]:
    """Split a delta into its phases ``catalog``, ``build`` and ``swap``, in this order.

    Lines before the first phase are prose and directives.

    Raises:
        ValueError: a statement stands before the first phase, or a phase is unknown.

    """
    head, *rest = re.split(r"^-- phase: (\w+)$", delta, flags=re.MULTILINE)
    found = dict(zip(rest[::2], rest[1::2], strict=True))
    if statements(head) or not set(found) <= set(PHASES):
        raise ValueError(f"a delta has the phases {', '.join(PHASES)}, and nothing before them")
    return {phase: found.get(phase, "").strip() for phase in PHASES}


@lru_cache(maxsize=512)  # of a file of sql/, which is split for each script that has it
def statements(script: str) -> tuple[str, ...]:
    """Split a script into statements, each with the comments before it and its semicolon.

    Handles strings, dollar quotes, comments and bodies in ``begin atomic``, whose ``end`` begins a
    line.
    """
    found, start = [], 0
    for token in _TOKEN.finditer(script):
        if token.group() != ";":
            continue
        text = script[start : token.end()]
        bare = _TOKEN.sub(lambda part: part.group() if part.group() == ";" else "", text)
        if re.search(r"\bbegin\s+atomic\b", bare) and not re.search(r"^end;\Z", bare, re.MULTILINE):
            continue
        found.append(text.strip())
        start = token.end()
    return tuple(found)


def bare(statement: str) -> str:
    """Return a statement without the comments before it."""
    return re.sub(r"\A(\s*--[^\n]*\n)*\s*", "", statement)


def write(scripts: dict[str, str], directory: Path = EXTENSION) -> None:
    """Write the scripts into a directory, and remove its other files."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in scripts.items():
        (directory / name).write_text(text, encoding="utf-8")


def pack(directory: Path) -> None:
    """Put the plain scripts of a directory into one archive.

    The scripts share most of their text, so the archive stays small however many releases it can
    upgrade.
    """
    with tarfile.open(directory / PACKED, "w:xz") as archive:
        for path in sorted(directory.glob("pgrecall-[0-9]*.sql")):
            about = tarfile.TarInfo(path.name)
            about.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(about, file)
            path.unlink()


def packed_script(name: str) -> str | None:
    """Return a script of an installed package; None if it does not exist."""
    path = EXTENSION / name
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if not (EXTENSION / PACKED).is_file():
        return None
    with tarfile.open(EXTENSION / PACKED) as archive:
        if name not in archive.getnames():
            return None
        file = archive.extractfile(name)
        assert file is not None
        return file.read().decode()


def release(to: str, today: datetime.date) -> None:
    """Freeze the current state as a release.

    Args:
        to: The version to release, later than every frozen one.
        today: The date for the changelog.

    Raises:
        ValueError: the version cannot be released, or is not in the release notes.

    """
    frozen = frozen_releases()
    if frozen and version_key(to) <= version_key(frozen[-1]):
        raise ValueError(f"{to} is not later than {frozen[-1]}, which is already released")
    headings = {
        "CHANGELOG.md": ("## Unreleased\n", f"## Unreleased\n\n## {to}, {today.isoformat()}\n"),
        "NOTES.md": (f"## {to} (not released yet)\n", f"## {to}, {today.isoformat()}\n"),
    }
    for name, (heading, _) in headings.items():
        if heading not in (MIGRATIONS / name).read_text(encoding="utf-8"):
            raise ValueError(f'{name} has no line "{heading.strip()}"')
    (MIGRATIONS / f"pgrecall--{to}.sql").write_text(full_script(), encoding="utf-8")
    following = MIGRATIONS / "next.sql"
    if frozen:
        following.rename(MIGRATIONS / f"pgrecall--{frozen[-1]}--{to}.delta.sql")
    following.write_text(NEXT, encoding="utf-8")
    for name, (heading, dated) in headings.items():
        text = (MIGRATIONS / name).read_text(encoding="utf-8")
        (MIGRATIONS / name).write_text(text.replace(heading, dated, 1), encoding="utf-8")


def set_version(to: str) -> None:
    """Write a version into the two files and the manifests that state it.

    Raises:
        ValueError: the version does not have the form 1.2.3.

    """
    if not VERSION.fullmatch(to):
        raise ValueError(f"a version looks like 1.2.3, not {to!r}")
    for path in MANIFESTS:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(f'"{version()}"', f'"{to}"'), encoding="utf-8")
    for path in VERSION_FILES:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(_stated_version(path), to), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Assemble the scripts, or prepare a release: see ``make build`` and ``make release``."""
    parser = argparse.ArgumentParser(prog="python -m pgrecall.server.build", description=__doc__)
    parser.add_argument("--set-version", metavar="X.Y.Z", help="set this version first")
    parser.add_argument("--release", metavar="X.Y.Z", help="freeze this version as a release")
    options = parser.parse_args(arguments)
    try:
        if options.set_version:
            set_version(options.set_version)
        if options.release:
            release(options.release, datetime.date.today())
        scripts = assemble()
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"error: {error}")
    write(scripts)
    print(f"built pgrecall {version()}: {len(scripts)} files in {EXTENSION.relative_to(ROOT)}")


def _stated_version(path: Path) -> str:
    """Find the only version literal, ``0.1.0`` in quotes, in a file."""
    found = re.findall(r"""(?:= |return )["'](\d+\.\d+\.\d+)["']""", path.read_text("utf-8"))
    if len(found) != 1:
        raise ValueError(f"{path} should state one version, not {len(found)}")
    return str(found[0])


def sources() -> list[Path]:
    """Return the files of sql/ in the order in which they run.

    Raises:
        ValueError: sql/order.txt names a missing file, or omits one.

    """
    files = [SQL / line for line in (SQL / ORDER).read_text(encoding="utf-8").split()]
    differing = set(files) ^ set(SQL.glob("*/*.sql"))
    if differing:
        names = ", ".join(sorted(str(path.relative_to(SQL)) for path in differing))
        raise ValueError(f"{ORDER} and the files beside it differ: {names}")
    return files


def is_state(path: Path) -> bool:
    """Return whether a file of sql/ defines state, which only migrations change."""
    return path.parent.name == STATE


def _delta(path: Path, phase: str, text: str) -> str:
    return f"-- delta {path.name}, {phase}\n{text}\n-- end of delta\n\n"


def _logic_around_swap(swap: str) -> tuple[list[str], list[str]]:
    """Split logic and comments into statements before and after the swap.

    Most run before it, so that tables are locked for a shorter time, since the body of a plpgsql
    function is resolved only when it is called. The body of an SQL function and a view are resolved
    at once; the row type of a view, of a private table or of a table that the swap makes may exist
    only afterwards. A comment comes after the swap if the swap mentions the name of its object.
    """
    words = set(re.findall(r"\w+", swap))
    files = sources()
    text = "".join(path.read_text("utf-8") for path in files)
    tables = re.findall(r"^create table (pgrecall_internal\.\w+)", text, re.MULTILINE)
    tables += re.findall(r"^create table ([\w.]+)", swap, re.MULTILINE)
    views = re.findall(r"^create or replace view ([\w.]+)", text, re.MULTILINE)
    names = "|".join(rf"{re.escape(name)}\b" for name in [*tables, *views])
    unknown = re.compile(rf"{names}|default pgrecall\w*\." if names else r"default pgrecall\w*\.")
    parts: tuple[list[str], list[str]] = ([], [])
    places: dict[str, int] = {}  # for each function, 0 before the swap, 1 after it
    for path in files:
        if is_state(path):
            continue
        for statement in map(bare, statements(path.read_text(encoding="utf-8"))):
            place = 1
            made = re.match(
                r"create or replace function ([\w.]+)(.*?)^(as \$|return\b|begin\b)",
                statement,
                re.DOTALL | re.MULTILINE,
            )
            said = re.match(r"comment on function ([\w.]+)", statement)
            if made:
                is_early = "language plpgsql" in made[2] and not unknown.search(made[2])
                place = places[made[1]] = 0 if is_early else 1
            elif said:
                place = places.get(said[1], 1)
            parts[place].append(statement + "\n")
    for comment in _state_statements("comment on"):
        name = comment.split(" is", 1)[0].split("(")[0].rpartition(".")[2].strip()
        is_moved = re.match(r"comment on \w+ (\w+\.\w+)", comment)
        is_late = name in words or (is_moved is not None and is_moved[1] in tables)
        parts[is_late].append(comment)
    return parts


def _state_statements(kind: str) -> list[str]:
    """Return the statements of sql/state/ that begin so; every upgrade runs them again."""
    return [
        bare(statement) + "\n"
        for path in sources()
        if is_state(path)
        for statement in statements(path.read_text(encoding="utf-8"))
        if bare(statement).startswith(kind)
    ]


def _frame(name: str) -> str:
    """Read a part of the frame, with the check of who owns the schema."""
    part, owner = ((FRAME / one).read_text(encoding="utf-8") for one in (name, "owner.sql"))
    return part.replace("{owner}\n", owner)


def _lock(is_due: str) -> str:
    return _part(FRAME / "lock.sql").replace("{is_due}", is_due)


def _array(deltas: Sequence[tuple[Path, object]], directive: str) -> str:
    """Return the names in lines ``-- drop public: a, b`` of all deltas, as an array literal."""
    names: list[str] = []
    for path, _ in deltas:
        lines = re.findall(rf"^-- {directive}: (.*)$", path.read_text("utf-8"), re.MULTILINE)
        names += [name.strip() for line in lines for name in line.split(",") if name.strip()]
    return "{" + ",".join(sorted(set(names))) + "}"


def _header(title: str) -> str:
    return f"-- {title}. Assembled from sql/ and migrations/ by make build: edit there.\n\n"


def _part(path: Path) -> str:
    return f"-- {path.parent.name}/{path.name}\n{path.read_text(encoding='utf-8').strip()}\n\n"


if __name__ == "__main__":
    main()
