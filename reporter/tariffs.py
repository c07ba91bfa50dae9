"""Moved to `collector.contract.tariffs`, since planning a run needs it; kept until nothing imports it here."""

from collector.contract.tariffs import NS_PER_HOUR as NS_PER_HOUR
from collector.contract.tariffs import Bill as Bill
from collector.contract.tariffs import Line as Line
from collector.contract.tariffs import Tariff as Tariff
from collector.contract.tariffs import bill as bill
from collector.contract.tariffs import billed_ns as billed_ns
from collector.contract.tariffs import cards_rented as cards_rented
from collector.contract.tariffs import fee_quantity as fee_quantity
from collector.contract.tariffs import package_count as package_count
from collector.contract.tariffs import tariffs_of as tariffs_of
from collector.contract.tariffs import taxed as taxed
