"""The one error family of both wings: what happened, where, and what to do next."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import NamedTuple


class ExitCode(IntEnum):
    """Exit codes of both commands (README, section 'Exit codes')."""

    FINE = 0
    FINDINGS = 1
    REFUSED = 2
    NOT_VERIFIABLE = 3
    MISSING_DEPENDENCY = 4
    DEVICE = 5


class Finding(NamedTuple):
    """One thing wrong with one input: the place, what is there, and the next step."""

    file: Path
    line: int | None
    rule: str
    message: str
    next_step: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else str(self.file)
        return f"{place}: [{self.rule}] {self.message}\n    next: {self.next_step}"


class DossierError(Exception):
    """A foreseeable fault; the command line prints it without a traceback and exits with `exit_code`."""

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, *, next_step: str) -> None:
        super().__init__(f"{message}\n    next: {next_step}")
        self.message = message
        self.next_step = next_step


class Refused(DossierError):
    """Input that cannot be used; carries each finding with its file and line."""

    def __init__(self, findings: list[Finding]) -> None:
        Exception.__init__(self, "\n".join(str(finding) for finding in findings))
        self.findings = findings
        self.message = f"{len(findings)} finding(s)"
        self.next_step = findings[0].next_step if findings else ""


class MissingDependency(DossierError):
    """A Python package or a system library is missing; the next step is the exact install command."""

    exit_code = ExitCode.MISSING_DEPENDENCY


class DeviceFault(DossierError):
    """The device or the engine cannot do what was asked."""

    exit_code = ExitCode.DEVICE
