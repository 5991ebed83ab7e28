"""The door for records: containers are known by exact type, columns are read by declared type.

Behind it there are arrays of NumPy, frames of pandas with NumPy's types, sparse matrices, and
PyTorch's data sets.
"""
