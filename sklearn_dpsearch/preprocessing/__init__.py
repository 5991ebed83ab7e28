"""Tables to numbers of unit scale, from a public schema: nothing is learned from the records."""

from .drafting import schema_of
from .schema import Schema
from .table_encoder import TableEncoder

__all__ = ["Schema", "TableEncoder", "schema_of"]
