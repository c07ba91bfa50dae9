"""Mission C11: the arithmetic of a hypothetical model of three billion parameters, in both units."""

from __future__ import annotations

from fractions import Fraction

import pytest

from collector.weight_arithmetic import GB, GIB, weight_arithmetic


def test_mission_c11_three_billion_parameters_at_16_8_and_4_bits() -> None:
    rows = weight_arithmetic(3_000_000_000, (16, 8, 4))
    assert [row.exact_bytes for row in rows] == [6_000_000_000, 3_000_000_000, 1_500_000_000]
    assert [row.in_gb for row in rows] == [6, 3, Fraction(3, 2)]
    assert [f"{float(row.in_gib):.3f}" for row in rows] == ["5.588", "2.794", "1.397"]
    difference = rows[0].less(rows[2])
    assert difference / GB == Fraction(9, 2)
    assert f"{float(difference / GIB):.3f}" == "4.191"


def test_bits_that_fill_no_whole_byte_stay_exact() -> None:
    assert weight_arithmetic(3, [3])[0].exact_bytes == Fraction(9, 8)


def test_no_model_is_refused() -> None:
    for parameters, bits in ((0, 4), (3, 0)):
        with pytest.raises(ValueError, match="is no model"):
            weight_arithmetic(parameters, [bits])
