"""Tables to numbers of unit scale, from a public schema: nothing is learned from the records."""

from ._columns import ColumnShape
from ._schema import Schema
from ._schema_draft import schema_of
from ._table_encoder import TableEncoder

__all__ = ["ColumnShape", "Schema", "TableEncoder", "schema_of"]
