"""Arithmetic on the weights of a hypothetical model: parameters x bits / 8, exact, a hypothesis to test.

The figure excludes scales, metadata, modules left unquantized, cache and temporaries: it is neither an artefact's size
nor what a running model needs. Two units are printed side by side, since many pages confuse them: 1 GB = 10^9 bytes,
1 GiB = 2^30 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

GB = 10**9
GIB = 2**30


class WeightArithmetic(NamedTuple):
    """The bytes that so many parameters take at so many bits each, were there nothing else."""

    parameters: int
    bits: int

    @property
    def exact_bytes(self) -> Fraction:
        return Fraction(self.parameters * self.bits, 8)

    @property
    def in_gb(self) -> Fraction:
        return self.exact_bytes / GB

    @property
    def in_gib(self) -> Fraction:
        return self.exact_bytes / GIB

    def less(self, other: WeightArithmetic) -> Fraction:
        """Return by how many bytes this one is larger than the other."""
        return self.exact_bytes - other.exact_bytes


def weight_arithmetic(parameters: int, bits: Sequence[int]) -> list[WeightArithmetic]:
    """Return one row per bit width. Raises ValueError for fewer than one parameter or bit."""
    if parameters < 1 or any(width < 1 for width in bits):
        raise ValueError(f"{parameters} parameters at {list(bits)} bits is no model")
    return [WeightArithmetic(parameters, width) for width in bits]
