"""The version of pgrecall in a database, and its installation and upgrade, for programs."""

from pgrecall.server.schema import (
    MigrationResult,
    PlannedStatement,
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
    "describe",
    "installed_version",
    "migrate",
    "pending_script",
    "plan",
    "script",
]
