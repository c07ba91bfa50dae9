"""A peak can be compared within its counter and nothing else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from collector.contract.peaks import Peak


def peak(peak_bytes: int, start_bytes: int | None = None, device_id: str = "cuda:0", scope: Any = "allocated") -> Peak:
    return Peak(device_id=device_id, memory_scope=scope, peak_bytes=peak_bytes, start_bytes=start_bytes)


@pytest.mark.parametrize("operation", [operator.add, operator.sub])
@pytest.mark.parametrize("other", [peak(5), 5])
def test_peaks_are_neither_added_nor_subtracted(operation: Callable[[Any, Any], Any], other: Any) -> None:
    with pytest.raises(TypeError, match="different moments"):
        operation(peak(7), other)
    with pytest.raises(TypeError, match="different moments"):
        operation(other, peak(7))


def test_peaks_are_not_summed() -> None:
    with pytest.raises(TypeError):
        sum([peak(1), peak(2)])


def test_the_maximum_over_phases_is_one_of_the_peaks() -> None:
    assert Peak.max_over_phases([peak(3), peak(9, 2), peak(4)]) == peak(9, 2)


def test_a_maximum_over_two_devices_or_two_scopes_is_refused() -> None:
    for other in (peak(2, device_id="cuda:1"), peak(2, scope="reserved")):
        with pytest.raises(ValueError, match="one device and one memory scope"):
            Peak.max_over_phases([peak(1), other])
    with pytest.raises(ValueError, match="needs peaks"):
        Peak.max_over_phases([])


def test_the_rise_above_the_start_needs_a_start_and_null_is_not_zero() -> None:
    assert peak(9, 2).above_start() == 7
    assert peak(9, 9).above_start() == 0
    assert peak(9).above_start() is None
    with pytest.raises(ValueError, match="cannot peak"):
        peak(1, 2)
