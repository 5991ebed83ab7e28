"""Tables to numbers of unit scale, from a public schema: nothing is learned from the records."""

from .columns import ColumnShape
from .schema import Schema
from .schema_draft import schema_of
from .table_encoder import TableEncoder

__all__ = ["ColumnShape", "Schema", "TableEncoder", "schema_of"]
