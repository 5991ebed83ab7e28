"""How clipped gradients are summed: known layers, a graph of known operations, or one record at a time."""
