"""The files that make build and make release read and write."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from pgrecall import build
from pgrecall._version import __version__


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
    assert {"pgrecall.control", f"pgrecall--{__version__}.sql"} <= names
    control = (tmp_path / "extension" / "pgrecall.control").read_text()
    assert f"default_version = '{__version__}'" in control


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
