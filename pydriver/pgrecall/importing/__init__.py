"""Import facts from files and from other memory stores."""

from pgrecall.importing.databases import SOURCES, Source
from pgrecall.importing.files import READERS, read_file
from pgrecall.importing.rows import Row, fact_of
from pgrecall.importing.run import Imported, Misfit, import_rows

__all__ = [
    "READERS",
    "SOURCES",
    "Imported",
    "Misfit",
    "Row",
    "Source",
    "fact_of",
    "import_rows",
    "read_file",
]
