"""The command line of the collector: parses, calls, prints. Anything heavy is imported inside a command."""

from __future__ import annotations

import click

from collector.contract.errors import DossierError


class Commands(click.Group):
    """A group in which a foreseeable fault is one message and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except DossierError as fault:
            click.echo(f"error: {fault}", err=True)
            ctx.exit(int(fault.exit_code))


@click.group(cls=Commands, context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.version_option(package_name="gpu-dossier", prog_name="collector")
def main() -> None:
    """Measure a frozen protocol on this machine, record by record.

    Example: collector run protocol.toml --out runs/
    """


if __name__ == "__main__":
    main()
