"""Faults of engines that the worker names a cause for."""

from __future__ import annotations

from collector.contract.errors import DeviceFault
from collector.contract.records.base import FailureCause


class EngineFault(DeviceFault):
    """A fault whose cause is known where it is raised; its class stands in the failure's record."""

    def __init__(self, message: str, *, next_step: str, cause: FailureCause) -> None:
        super().__init__(message, next_step=next_step)
        self.cause = cause


class NotAsRequested(EngineFault):
    """What was loaded is not what the variant asks for: measuring it would put another variant under its name."""


class EngineStart(EngineFault):
    """A server did not start: says nothing about whether the model fits."""


class ServerLost(EngineFault):
    """A server that was asked ended, is gone or refuses everything: a resumed run measures the pass again."""
