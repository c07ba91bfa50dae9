"""The command line of the collector: parses, calls, prints. Anything heavy is imported inside a command."""

from __future__ import annotations

from pathlib import Path

import click

from collector.contract.errors import DossierError, ExitCode


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


@main.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--kind", type=click.Choice(["extraction"]), default="extraction", show_default=True, help="Kind of task."
)
@click.option("--model", default=None, help="Hugging Face id or folder to write into the protocol.")
def init(folder: Path, kind: str, model: str | None) -> None:
    """Write a protocol, a campaign and documents into DIR, ready to run as they are.

    Nothing that is there already is overwritten.

    Example: collector init trial
    """
    from collector.init import init_folder

    for path in init_folder(folder, kind=kind, model=model):
        click.echo(path)
    click.echo(f"next: collector check {folder / 'protocol.toml'}", err=True)


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option("--no-tokens", is_flag=True, help="Do not count the prompts' tokens; needs no model.")
def check(protocol: Path, no_tokens: bool) -> None:
    """Refuse everything about PROTOCOL that can be refused before money is spent.

    Each finding names file, line and next step. Exit code 0: nothing found, 1: findings.

    Example: collector check trial/protocol.toml
    """
    from collector.protocol_check import examine

    report = examine(protocol, with_tokenizer=not no_tokens)
    if report.findings:
        for finding in report.findings:
            click.echo(finding)
        click.echo(f"refused: {len(report.findings)} finding(s)", err=True)
        raise click.exceptions.Exit(int(ExitCode.FINDINGS))
    roles = ", ".join(f"{count} {role}" for role, count in sorted(report.role_counts.items()))
    click.echo(f"{protocol}: nothing to refuse")
    click.echo(f"documents: {roles}")
    if report.longest_prompt_tokens is None:
        click.echo("prompts: not counted")
    elif report.protocol is not None:
        limit = "not known" if report.context_limit_tokens is None else f"{report.context_limit_tokens} tokens"
        output = report.protocol.generation.max_new_tokens
        click.echo(f"prompts: longest {report.longest_prompt_tokens} tokens + {output} output tokens; context {limit}")
    click.echo("lock: agrees" if report.is_frozen else "lock: not frozen yet")


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Default: campaign.toml beside PROTOCOL."
)
@click.option("--no-tokens", is_flag=True, help="Do not count the prompts' tokens; needs no model.")
def freeze(protocol: Path, campaign: Path | None, no_tokens: bool) -> None:
    """Check PROTOCOL and write its lock and salt beside it; a run accepts nothing that drifted from the lock.

    Freezing again is safe: the salt stays, and the ids change only with the content.

    Example: collector freeze trial/protocol.toml
    """
    from collector.clock import SystemClock
    from collector.freeze import freeze as freeze_protocol
    from collector.lock import lock_path

    lock = freeze_protocol(protocol, campaign=campaign, clock=SystemClock(), with_tokenizer=not no_tokens)
    click.echo(f"protocol_id {lock.protocol_id}")
    click.echo(f"plan_id     {lock.plan_id}")
    click.echo(f"objective   {lock.objective_digest or 'not declared: no campaign file'}")
    click.echo(f"wrote {lock_path(protocol)}; next: collector run {protocol} --out runs/", err=True)


if __name__ == "__main__":
    main()
