"""The two commands, run in this process, which has imported everything already."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result


def run(main: Any, *arguments: object) -> Result:
    """Run a command and return what became of it."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def done(main: Any, *arguments: object) -> str:
    """Run a command that succeeds and return its standard output."""
    result = run(main, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
