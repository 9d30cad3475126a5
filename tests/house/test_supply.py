"""The lock file holds what the project asks for, with hashes; the SBOM and the audit follow it."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.utils import canonicalize_name

from house import supply


def test_the_lock_holds_each_requirement_in_a_version_that_fits() -> None:
    """Where this fails, pyproject.toml has changed: make lock."""
    locked = supply.locked()
    asked = supply.needed(supply.ROOT, supply.EXTRAS)
    wanted = {canonicalize_name(part.name): part for part in asked if part.name != supply.ROOT}

    assert [name for name in wanted if name not in locked] == []
    assert [name for name in wanted if locked[name][0] not in wanted[name].specifier] == []


def test_the_lock_names_no_place_to_fetch_from() -> None:
    text = supply.LOCK.read_text(encoding="utf-8")

    assert "://" not in text
    assert "index" not in text
    assert text.count("--hash=sha256:") == len(supply.locked()) > 50


def test_the_bill_of_materials_lists_packages_and_models_with_hashes() -> None:
    bill = supply.bill()

    names = [component["name"] for component in bill["components"]]
    assert bill["bomFormat"] == "CycloneDX"
    assert set(supply.locked()) < set(names)
    assert "pgrecall/reranker/model.onnx" in names
    assert all(part["hashes"][0]["content"] for part in bill["components"])


def test_without_a_network_the_audit_says_that_it_was_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")

    assert supply.audit() == 0
    assert capsys.readouterr().out.startswith("skipped: pip-audit cannot be installed here")


def test_an_audit_names_holes_and_does_not_pass_for_one_that_found_no_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    safe: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
    hole: dict[str, Any] = {
        "name": "b",
        "version": "2",
        "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}],
    }
    unknown: dict[str, Any] = {"name": "c", "skip_reason": "not found"}

    codes = [supply.told(found) for found in ([safe], [safe, hole, unknown], [unknown])]

    assert codes == [0, 1, 0]
    assert capsys.readouterr().out.splitlines() == [
        "1 of 1 were looked up",
        "b 2: CVE-1, mended in 3",
        "2 of 3 were looked up",
        "skipped: none of the packages was found: not found",
    ]
