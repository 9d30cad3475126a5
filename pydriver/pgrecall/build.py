"""Assemble sql/ and migrations/ into the scripts that every install route runs.

Works in a checkout only. An installed package carries the assembled scripts in ``extension/``.
It needs nothing outside the standard library, so that ``make install`` runs on a database server
that has no more than Python.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parents[1]
SQL = ROOT / "sql"
MIGRATIONS = ROOT / "migrations"
EXTENSION = PACKAGE / "extension"
VERSION_FILES = (PACKAGE / "_version.py", SQL / "20-version.sql")

LOGIC = "20"  # files from here on only create or replace, and every upgrade runs them again
VERSION = re.compile(r"\d+\.\d+\.\d+")

CONTROL = """\
comment = 'the memory of AI agents: hybrid recall in one call'
default_version = '{version}'
requires = 'vector'
relocatable = false
schema = 'pg_catalog'
superuser = false
"""

# What an upgrade script does in place of sql/00-schema.sql: it refuses the wrong database, and puts
# the same schemas on the path that every function freezes.
GUARD = """\
do $guard$
declare
  is_extension boolean := exists (select from pg_extension e where e.extname = 'pgrecall');
begin
  if to_regprocedure('pgrecall.version()') is null then
    raise exception using
      errcode = 'RC012',
      message = 'pgrecall is not installed in this database',
      hint    = 'Install it with: pgrecall migrate, or: create extension pgrecall;';
  end if;
  if pgrecall.version() <> '{before}' then
    raise exception using
      errcode = 'RC012',
      message = format('expected pgrecall version "{before}", not "%s"', pgrecall.version()),
      hint    = 'Run pgrecall migrate: it picks the script for the installed version.';
  end if;
  if is_extension then
    begin
      -- Allowed in the script of an extension alone, which is how we know that this is one.
      perform pg_extension_config_dump('pgrecall.bank', '');
    exception
      when feature_not_supported then
        raise exception using
          errcode = 'RC012',
          message = 'pgrecall is installed as an extension, which a script cannot upgrade',
          hint    = 'Run: alter extension pgrecall update;';
    end;
  end if;

  perform set_config('search_path', format('pg_catalog, %I, pg_temp', n.nspname), true)
  from    pg_extension x
  join    pg_namespace n on n.oid = x.extnamespace
  where   x.extname = 'vector';
end;
$guard$;

do $guard$
begin
  if current_setting('search_path') not like 'pg_catalog, %, pg_temp' then
    raise exception using
      errcode = 'RC012',
      message = 'this script was not run in one transaction',
      hint    = 'Run it with: psql -1 -v ON_ERROR_STOP=1 -f';
  end if;
end;
$guard$;

"""

NEXT = """\
-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.
"""


def is_checkout() -> bool:
    """Tell whether the package lies in a checkout, with sql/ and migrations/ beside it."""
    return SQL.is_dir() and MIGRATIONS.is_dir()


def version() -> str:
    """Return the version being developed."""
    return _stated_version(VERSION_FILES[0])


def version_key(text: str) -> tuple[int, ...]:
    """Return what versions are ordered by: ``0.10.0`` comes after ``0.9.0``."""
    return tuple(int(part) for part in text.split("."))


def frozen_releases() -> list[str]:
    """Return the versions that have a frozen script, oldest first."""
    names = (path.stem.removeprefix("pgrecall--") for path in MIGRATIONS.glob("pgrecall--*.sql"))
    return sorted((name for name in names if VERSION.fullmatch(name)), key=version_key)


def full_script() -> str:
    """Assemble the script that installs the current version into a database without pgrecall."""
    return _header(f"pgrecall {version()}, the whole schema") + "".join(map(_part, _sources()))


def upgrade_script(before: str) -> str:
    """Assemble the script that upgrades the frozen release ``before`` to the current version."""
    releases = frozen_releases()
    steps = pairwise(releases[releases.index(before) :])
    deltas = [MIGRATIONS / f"pgrecall--{a}--{b}.delta.sql" for a, b in steps]
    logic = [path for path in _sources() if path.name >= LOGIC]
    return (
        _header(f"pgrecall {before} to {version()}")
        + GUARD.format(before=before)
        + "".join(_part(path) for path in [*deltas, MIGRATIONS / "next.sql", *logic])
    )


def assemble() -> dict[str, str]:
    """Assemble everything that an install route needs, by file name.

    Raises:
        FileNotFoundError: this is not a checkout.

    """
    if not is_checkout():
        raise FileNotFoundError(
            f"{ROOT} is not a checkout of pgrecall: sql/ and migrations/ are missing. "
            "An installed package has its scripts already, in pgrecall/extension/."
        )
    now = version()
    scripts = {
        "pgrecall.control": CONTROL.format(version=now),
        f"pgrecall--{now}.sql": full_script(),
    }
    for before in frozen_releases():
        if version_key(before) < version_key(now):
            scripts[f"pgrecall--{before}--{now}.sql"] = upgrade_script(before)
    return scripts


def write(scripts: dict[str, str], directory: Path = EXTENSION) -> None:
    """Write the scripts into a directory that holds nothing else."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in scripts.items():
        (directory / name).write_text(text, encoding="utf-8")


def release(to: str, today: datetime.date) -> None:
    """Freeze the current state as a release.

    Args:
        to: The version to release, later than every frozen one.
        today: The date that the changelog gets.

    Raises:
        ValueError: the version cannot be released.

    """
    frozen = frozen_releases()
    if frozen and version_key(to) <= version_key(frozen[-1]):
        raise ValueError(f"{to} is not later than {frozen[-1]}, which is released already")
    (MIGRATIONS / f"pgrecall--{to}.sql").write_text(full_script(), encoding="utf-8")
    following = MIGRATIONS / "next.sql"
    if frozen:
        following.rename(MIGRATIONS / f"pgrecall--{frozen[-1]}--{to}.delta.sql")
    following.write_text(NEXT, encoding="utf-8")
    changelog = MIGRATIONS / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    heading = "## Unreleased\n"
    dated = f"{heading}\n## {to}, {today.isoformat()}\n"
    changelog.write_text(text.replace(heading, dated, 1), encoding="utf-8")


def set_version(to: str) -> None:
    """Write a version into the two files that state it.

    Raises:
        ValueError: it is not of the form 1.2.3.

    """
    if not VERSION.fullmatch(to):
        raise ValueError(f"a version looks like 1.2.3, not {to!r}")
    for path in VERSION_FILES:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(_stated_version(path), to), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Assemble the scripts, or prepare a release: see ``make build`` and ``make release``."""
    parser = argparse.ArgumentParser(prog="python -m pgrecall.build", description=__doc__)
    parser.add_argument("--set-version", metavar="X.Y.Z", help="state this version first")
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
    """Find the one version literal, ``0.1.0`` in quotes, that a file states."""
    found = re.findall(r"""(?:= |return )["'](\d+\.\d+\.\d+)["']""", path.read_text("utf-8"))
    if len(found) != 1:
        raise ValueError(f"{path} should state one version, not {len(found)}")
    return str(found[0])


def _sources() -> list[Path]:
    return sorted(SQL.glob("*.sql"), key=lambda path: path.name)


def _header(title: str) -> str:
    return f"-- {title}. Assembled from sql/ and migrations/ by make build: edit there.\n\n"


def _part(path: Path) -> str:
    return f"-- {path.parent.name}/{path.name}\n{path.read_text(encoding='utf-8').strip()}\n\n"


if __name__ == "__main__":
    main()
