"""The files that make build and make release read and write."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pgrecall._version import __version__
from pgrecall.server import build


def test_the_package_and_the_sql_state_the_same_version() -> None:
    assert {build._stated_version(path) for path in build.VERSION_FILES} == {__version__}


def test_a_released_version_is_changed_no_more() -> None:
    frozen = build.MIGRATIONS / f"pgrecall--{__version__}.sql"
    if not frozen.exists():
        pytest.skip(f"{__version__} is not released yet")

    # Otherwise raise the version in both files of build.VERSION_FILES.
    assert build.full_script() == frozen.read_text()


def test_what_is_built_is_what_is_written(tmp_path: Path) -> None:
    build.write(build.assemble(), tmp_path / "extension")

    names = {path.name for path in (tmp_path / "extension").iterdir()}
    assert {
        "pgrecall.control",
        f"pgrecall--{__version__}.sql",
        build.install_name(__version__),
        build.upgrade_name("0.1.0", __version__),
    } <= names
    control = (tmp_path / "extension" / "pgrecall.control").read_text()
    assert f"default_version = '{__version__}'" in control


def test_postgresql_takes_no_plain_script_for_one_of_the_extension() -> None:
    plain = [name for name in build.assemble() if not name.startswith("pgrecall--")]

    assert sorted(plain)[-1] == "pgrecall.control"
    assert {build.install_name(__version__), build.upgrade_name("0.1.0", __version__)} < set(plain)


def test_the_extension_carries_the_very_scripts_of_the_other_routes() -> None:
    scripts = build.assemble()
    setup = scripts[f"pgrecall--{__version__}.sql"]

    assert scripts[build.install_name(__version__)] in setup
    assert scripts[build.upgrade_name("0.1.0", __version__)] in setup


def test_a_script_is_split_into_statements() -> None:
    script = """
-- A comment; with a semicolon.
select ';' as "a;b";
do $x$ begin; end; $x$;
create function f() returns integer language sql
begin atomic
  select case when true then 1 end;
  select 2;
end;
drop table t; /* ; */
"""

    found = build.statements(script)

    assert [build.bare(statement).split()[0] for statement in found] == [
        "select",
        "do",
        "create",
        "drop",
    ]
    assert found[0].startswith("-- A comment")


def test_a_delta_is_split_into_phases() -> None:
    assert build.phases("-- prose\n-- phase: build\na;\n-- phase: swap\nb;\nc;\n") == {
        "catalog": "",
        "build": "a;",
        "swap": "b;\nc;",
    }


def test_little_comes_while_tables_are_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "create or replace function pgrecall.{}() returns {} language {} stable"
    made = {
        "early": head.format("early", "integer", "plpgsql") + "\nas $$ begin end; $$;",
        "in_sql": head.format("in_sql", "integer", "sql") + "\nreturn 1;",
        "of_view": head.format("of_view", "setof pgrecall.v", "plpgsql") + "\nas $$ begin end; $$;",
    }
    view = "create or replace view pgrecall.v as select 1 as one;\n"
    for room in ("state", "bank"):
        (tmp_path / room).mkdir()
    (tmp_path / "state/bank.sql").write_text("comment on column pgrecall.bank.old is 'Old.';\n")
    (tmp_path / "bank/bank.sql").write_text(view + "\n".join(made.values()))
    (tmp_path / build.ORDER).write_text("state/bank.sql\nbank/bank.sql\n")
    monkeypatch.setattr(build, "SQL", tmp_path)

    early, late = build._logic_around_swap("alter table pgrecall.bank add column new text;")

    assert early == [made["early"] + "\n", "comment on column pgrecall.bank.old is 'Old.';\n"]
    assert late == [view, made["in_sql"] + "\n", made["of_view"] + "\n"]


@pytest.mark.parametrize("delta", ["drop table t;\n", "-- phase: later\nselect 1;\n"])
def test_a_statement_outside_the_phases_is_refused(delta: str) -> None:
    with pytest.raises(ValueError, match="a delta has the phases catalog, build, swap"):
        build.phases(delta)


def test_versions_are_ordered_by_number() -> None:
    assert sorted(["0.10.0", "0.9.1", "0.9.0"], key=build.version_key) == [
        "0.9.0",
        "0.9.1",
        "0.10.0",
    ]


def test_a_version_has_three_numbers() -> None:
    with pytest.raises(ValueError, match=r"a version looks like 1\.2\.3, not '1\.2'"):
        build.set_version("1.2")


def test_a_release_is_later_than_the_ones_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pgrecall--0.9.0.sql").touch()
    monkeypatch.setattr(build, "MIGRATIONS", tmp_path)

    with pytest.raises(ValueError, match=r"0\.8\.0 is not later than 0\.9\.0"):
        build.release("0.8.0", datetime.date(2026, 1, 1))
