"""Engines, which sum clipped gradients: by known layers, a graph of known operations, or one record
at a time."""
