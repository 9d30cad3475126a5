"""The version of pgrecall in a database, and its installation and upgrade, for programs."""

from pgrecall.server.schema import (
    MigrationResult,
    PlannedStatement,
    dependents,
    describe,
    installed_version,
    migrate,
    pending_script,
    plan,
    script,
)

__all__ = [
    "MigrationResult",
    "PlannedStatement",
    "dependents",
    "describe",
    "installed_version",
    "migrate",
    "pending_script",
    "plan",
    "script",
]
