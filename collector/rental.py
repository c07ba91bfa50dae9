"""Which rental of the campaign pays for a run: the one that is named, else the one that covers now and this device."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.campaign_file import read_campaign
from collector.contract.charges import Rental
from collector.contract.errors import DossierError
from collector.contract.records import Device
from collector.freeze import campaign_path


class RentalOfRun(NamedTuple):
    """The rental that a run's header names, or null; `notice` is what the user should read about it."""

    rental: Rental | None
    notice: str | None = None

    @property
    def rental_id(self) -> str | None:
        return None if self.rental is None else self.rental.id

    def left(self, now: str) -> Fraction | None:
        """Return the hours that are left of the rental at this moment (UTC), null without a rental; never below 0."""
        if self.rental is None:
            return None
        seconds = Fraction((self.rental.end - moment(now)) // dt.timedelta(microseconds=1), 10**6)
        return max(Fraction(0), seconds / 3600)


def find_rental(
    protocol: Path, campaign: Path | None, wanted: str | None, devices: Sequence[Device], now: str
) -> RentalOfRun:
    """Return the rental of a run that starts now (UTC) on these devices.

    campaign: by default campaign.toml beside the protocol. A rental that is named is taken as it is, with a notice
    where its time or its offer's device is another; otherwise one is taken only where it alone fits.

    Raises DossierError for a rental that the campaign does not have, Refused for a broken campaign file.
    """
    source = campaign_path(protocol, campaign)
    if source is None:
        if wanted is not None:
            step = "name the campaign file with --campaign, or leave --rental out"
            raise DossierError(f"--rental {wanted}: there is no campaign file beside {protocol}", next_step=step)
        return RentalOfRun(None)
    known = read_campaign(source).campaign
    if wanted is not None:
        return _named(known, source, wanted, devices, moment(now))
    if not known.rentals:
        return RentalOfRun(None)
    fitting = [one for one in known.rentals if not _objections(known, one, devices, moment(now))]
    if len(fitting) == 1:
        return RentalOfRun(fitting[0])
    found = f"rentals {', '.join(one.id for one in fitting)} of {source} all cover" if fitting else (
        f"no rental of {source} covers"
    )  # fmt: skip
    step = "the records name no rental; name it with --rental ID, or list the run under the rental's `runs` later"
    return RentalOfRun(None, f"{found} this moment on this device: {step}")


def moment(stamp: str) -> dt.datetime:
    """Return a UTC stamp of the contract as an aware datetime."""
    return dt.datetime.fromisoformat(stamp.replace("Z", "+00:00"))


def _named(
    campaign: Campaign, source: Path, wanted: str, devices: Sequence[Device], now: dt.datetime
) -> RentalOfRun:  # fmt: skip
    rental = next((one for one in campaign.rentals if one.id == wanted), None)
    if rental is None:
        listed = ", ".join(one.id for one in campaign.rentals) or "none yet: add a [[rental]]"
        raise DossierError(f"{source} has no rental {wanted!r}", next_step=f"name one of: {listed}")
    objections = _objections(campaign, rental, devices, now)
    return RentalOfRun(rental, f"rental {wanted}: {'; '.join(objections)}" if objections else None)


def _objections(campaign: Campaign, rental: Rental, devices: Sequence[Device], now: dt.datetime) -> list[str]:
    """Return why a rental is not that of a run here and now, in words; empty where nothing speaks against it."""
    found = []
    if not rental.start <= now < rental.end:
        found.append(f"it runs from {rental.start.isoformat()} to {rental.end.isoformat()}, and now it is {now:%FT%TZ}")
    offer = next((one for one in campaign.offers if one.id == rental.offer), None)
    if offer is not None and all(
        (device.device_name, device.mig_profile) != (offer.device, offer.mig_profile) for device in devices
    ):
        here = ", ".join(device.device_name for device in devices)
        found.append(f"its offer {offer.id} is for {offer.device}, and this is {here}")
    return found
