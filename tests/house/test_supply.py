"""The lock file holds what the project asks for, with hashes; the SBOM and the audit follow it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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
    shipped = {
        str(file.relative_to(supply.PROJECT))
        for file in (supply.PROJECT / supply.ROOT).rglob("*")
        if file.suffix in (".onnx", ".safetensors")
    }
    assert "pgrecall/reranker/model.onnx" in shipped
    assert shipped <= set(names)
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


# What runs code of others where it is read


def calls_of(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_nothing_is_unpickled() -> None:
    readers = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    found = []
    root = supply.PROJECT.parent
    files = [
        file for part in ("pydriver", "bench", "tests") for file in (root / part).rglob("*.py")
    ]
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {
            name.split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
        }
        found += [f"{file.name}: imports {name}" for name in sorted(names & readers)]
        for function, call in calls_of(tree):
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            is_unsafe = (
                (function == "torch.load" and given.get("weights_only") != "True")
                or given.get("allow_pickle") == "True"
                or given.get("trust_remote_code") == "True"
                or function in ("yaml.load", "read_pickle", "pd.read_pickle")
            )
            if is_unsafe:
                found.append(f"{file.name}:{call.lineno}: {function}")

    assert len(files) > 100
    assert found == []


def test_the_models_that_ship_are_of_a_format_that_runs_nothing_and_say_their_licence() -> None:
    package = supply.PROJECT / supply.ROOT
    models = [
        file
        for file in package.rglob("*")
        if file.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".onnx", ".safetensors", ".h5")
    ]

    assert {file.suffix for file in models} == {".onnx", ".safetensors"}
    for file in models:
        cards = [folder / "MODEL_CARD.md" for folder in file.parents if folder != package.parent]
        card = next(card for card in cards if card.is_file())
        assert re.search(r"\b(MIT|Apache-2\.0)\b", card.read_text(encoding="utf-8")), card


def test_every_component_of_the_bill_names_its_licence() -> None:
    without = [part["name"] for part in supply.bill()["components"] if not part.get("licenses")]

    assert without == []
