"""Structured records as Python holds them and kernels get them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Struct(np.record):  # type: ignore[misc]  # not final, as its stub says
    """One record, cheap to hand to a kernel.

    Each call asks a record for its `data`, for which numpy describes every field anew: a dozen microseconds where there
    are hundreds, more than many a kernel takes. All that the call needs is where the bytes are.
    """

    @property
    def data(self) -> Any:
        """The record's bytes, not a copy: uint8[itemsize]."""
        return np.asarray(self).reshape(1).view(np.uint8)


def zeros(dtype: Any, count: int = 1) -> Any:
    """So many records, all bytes 0. Fields are attributes, too, as they are for kernels that run as plain Python."""
    return np.zeros(count, np.dtype((Struct, dtype)))
