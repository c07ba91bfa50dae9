"""Whether an offer is for a machine: device, cards, MIG profile and memory, as both are named."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple

from .money import exact
from .offers import Offer
from .tariffs import cards_rented

MEMORY_TOLERANCE_PERCENT = 8
"""An offer's memory matches within this: sold sizes are rounded, and error correction takes its part (46,068 of 49,152
MiB on one 48 GB card). Neighbouring sizes of one card differ by more (40 and 80, 20 and 24 GB)."""


MismatchReason = Literal["device", "count", "memory", "mig"]


class Machine(NamedTuple):
    """What a candidate was measured on, as far as an offer can name it."""

    device: str
    device_count: int
    memory_bytes: int | None
    mig_profile: str | None
    used_count: int | None = None
    """Cards that work for the configuration, where they are fewer than the machine holds."""

    @property
    def used_cards(self) -> int:
        return self.used_count or self.device_count


class Mismatch(NamedTuple):
    """Why an offer is not for the measured machine."""

    reason: MismatchReason
    offered: str
    measured: str


def offer_mismatch(offer: Offer, machine: Machine) -> Mismatch | None:
    """Return why the offer is not for the measured machine, or null where it is.

    More cards than are used are no mismatch: they are paid for and idle. Fewer are one, and so is a smallest number of
    single cards that the node does not hold. Memory is compared only where the offer names it, within
    MEMORY_TOLERANCE_PERCENT of what it names.
    """
    if offer.device != machine.device:
        return Mismatch("device", offer.device, machine.device)
    if cards_rented(offer, machine.used_cards) > offer.device_count or machine.used_cards > offer.device_count:
        return Mismatch("count", str(offer.device_count), str(machine.used_cards))
    if offer.mig_profile != machine.mig_profile:
        return Mismatch("mig", offer.mig_profile or "none", machine.mig_profile or "none")
    if offer.device_memory_gib is not None:
        offered = exact(offer.device_memory_gib)
        if machine.memory_bytes is None:
            return Mismatch("memory", offer.device_memory_gib, "not detected")
        measured = Fraction(machine.memory_bytes, 2**30)
        if abs(measured - offered) * 100 > offered * MEMORY_TOLERANCE_PERCENT:
            return Mismatch("memory", offer.device_memory_gib, f"{float(measured):.1f}")
    return None
