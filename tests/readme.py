"""The README's table of functions, made of the comments in the database."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import psycopg

README = Path(__file__).resolve().parents[1] / "README.md"
SECTION = re.compile(r"(<!-- api: [^>]*-->\n).*?(<!-- /api -->)", re.DOTALL)

# Views first, then functions in the order in which they were made: that of the files in sql/.
PUBLIC = """
select 'view ' || c.relname, obj_description(c.oid, 'pg_class')
from   pg_class c
where  c.relnamespace = 'pgrecall'::regnamespace and c.relkind = 'v'
union all
select * from (
  select p.proname || '(' || coalesce((
           select string_agg(a.name, ', ' order by a.n)
           from   unnest(p.proargnames, p.proargmodes) with ordinality as a(name, mode, n)
           where  coalesce(a.mode, 'i') = 'i'
         ), '') || ')',
         obj_description(p.oid, 'pg_proc')
  from   pg_proc p
  where  p.pronamespace = 'pgrecall'::regnamespace and p.proname !~ '^_'
  order  by p.proname
) as f
"""


def api_table(connection: psycopg.Connection[Any]) -> str:
    """Return the table: each function with its arguments, and what its comment says."""
    rows = ["| function | what it does |", "|---|---|"]
    for signature, comment in connection.execute(PUBLIC).fetchall():
        text = " ".join(comment.split()).replace("|", "\\|")
        rows.append(f"| `{signature}` | {text} |")
    return "\n".join(rows) + "\n"


def with_table(text: str, table: str) -> str:
    """Return the README with this table in its place."""
    return SECTION.sub(lambda found: found[1] + table + found[2], text)


def main(dsn: str) -> None:
    """Write the table into README.md from a database that has pgrecall."""
    with psycopg.connect(dsn) as connection:
        text = README.read_text(encoding="utf-8")
        README.write_text(with_table(text, api_table(connection)), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        import servers

        with servers.server_under_test() as server, server.database() as dsn:
            with psycopg.connect(dsn) as connection:
                connection.execute("create extension vector")
            servers.install("driver", server, dsn)
            main(dsn)
