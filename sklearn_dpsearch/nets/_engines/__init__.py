"""Engines that sum clipped gradients: by layers, by a graph of operations, or record by record."""
