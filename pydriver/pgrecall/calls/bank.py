"""Banks: their defaults, their copies, and the rows of an export."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg.rows import scalar_row

from pgrecall.arguments import check_given
from pgrecall.calls.call import (
    Call,
    call_command,
    call_record,
    call_value,
    named_arguments,
    nothing,
    row_of,
)
from pgrecall.calls.values import jsonable, listed, shallow_json
from pgrecall.errors import InvalidFact
from pgrecall.rows import Bank, BankModels


def create_bank(
    bank: str,
    *,
    text_search_config: str | None = None,
    embedding_model: str | None = None,
    embedding_dimensions: int | None = None,
    fact_types: Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    exist_ok: bool = False,
) -> Call[Any, None]:
    """Create a bank; with exist_ok, accept an existing one."""
    check_given(exist_ok=exist_ok)
    missing = " where not exists (select from pgrecall.bank_overview where bank_id = %(bank)s)"
    arguments, parameters = named_arguments(
        {"bank": bank},
        text_search_config=text_search_config,
        embedding_model=embedding_model,
        embedding_dimensions=embedding_dimensions,
        fact_types=listed(fact_types),
        settings=settings,
    )
    return Call(
        f"select pgrecall.create_bank({arguments}){missing if exist_ok else ''}",
        parameters,
        scalar_row,
        nothing,
        is_repeatable=exist_ok,
    )


def configure_bank(bank: str, settings: Mapping[str, object]) -> Call[Any, None]:
    """Change a bank's defaults."""
    return call_command("configure_bank", {"bank": bank, "settings": settings})


def add_fact_type(bank: str, fact_type: str, *, description: str | None) -> Call[Any, None]:
    """Add a fact type to a bank."""
    return call_command(
        "add_fact_type", {"bank": bank, "fact_type": fact_type}, description=description
    )


def drop_bank(bank: str) -> Call[int, int]:
    """Drop a bank with everything in it."""
    return call_value("drop_bank", {"bank": bank}, is_repeatable=False)


def clone_bank(bank: str, new_bank: str) -> Call[int, int]:
    """Copy a bank."""
    return call_value("clone_bank", {"bank": bank, "new_bank": new_bank}, is_repeatable=False)


def exported_rows(bank: str, *, after: str | None, batch_size: int) -> Call[str, list[str]]:
    """Return a page of the rows of a bank, each as JSON text."""
    listing, parameters = named_arguments({"bank": bank, "batch_size": batch_size}, after=after)
    sql = f"select r::pg_catalog.text from pgrecall.exported_rows({listing}) as r"
    return Call(sql, parameters, scalar_row, list)


def import_rows(bank: str, rows: Iterable[object]) -> Call[int, int]:
    """Store rows of an export."""
    texts = [_row_text(row, f"rows[{i}]") for i, row in enumerate(rows)]
    return call_value("import_rows", {"bank": bank, "rows": f"[{','.join(texts)}]"})


def _row_text(row: object, where: str) -> str:
    """Return a row as JSON text; one that is text is checked, and sent as it is."""
    if not isinstance(row, str):
        return json.dumps(jsonable(row, where, InvalidFact))
    try:
        jsonable(shallow_json(row), where, InvalidFact)
    except json.JSONDecodeError as error:
        raise InvalidFact(
            f"{where}: not JSON at column {error.colno}: {error.msg}",
            hint="Pass the rows of export(), in their order and unchanged.",
        ) from None
    return row


def banks() -> Call[Bank, list[Bank]]:
    """List all banks by name."""
    return Call("select * from pgrecall.bank_overview order by bank_id", {}, row_of(Bank), list)


def bank_models(bank: str) -> Call[BankModels, BankModels]:
    """Return a bank's current and next embedding model."""
    return call_record(BankModels, "bank_models", {"bank": bank})


def bank_options(bank: str) -> Call[Any, dict[str, object]]:
    """Return all options of a recall with their defaults in a bank."""
    return call_value("bank_options", {"bank": bank})
