"""The tafl family: one set of kernels for every board from 3x3 to 19x19, rules as data."""
