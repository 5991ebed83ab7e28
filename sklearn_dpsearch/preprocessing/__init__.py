"""Tables to numbers of unit scale, from a public schema: nothing is learned from the records."""

from .drafting import schema_of
from .schema import Schema
from .shapes import ColumnShape
from .table_encoder import TableEncoder

__all__ = ["ColumnShape", "Schema", "TableEncoder", "schema_of"]
