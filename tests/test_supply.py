"""The lock file holds what the project asks for, with hashes; the SBOM and the audit follow it."""

from __future__ import annotations

from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import supply


def test_the_lock_holds_each_requirement_in_a_version_that_fits() -> None:
    """Where this fails, pyproject.toml has changed: make lock."""
    locked = supply.locked()
    asked = [Requirement(text) for text in metadata.requires(supply.ROOT) or ()]
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
