"""The command line of the reporter: parses, calls, prints. Anything heavy is imported inside a command."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from collector.contract.errors import DossierError, ExitCode

if TYPE_CHECKING:
    from reporter.dossier import Dossier


class Commands(click.Group):
    """A group in which a foreseeable fault is one message and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except DossierError as fault:
            click.echo(f"error: {fault}", err=True)
            ctx.exit(int(fault.exit_code))


@click.group(cls=Commands, context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.version_option(package_name="gpu-dossier", prog_name="reporter")
def main() -> None:
    """Explain run files: check them, select a configuration, write the dossier. RUNS are files or folders.

    Example: reporter pdf runs/ --campaign campaign.toml -o dossier.pdf
    """


def _day(_: click.Context, __: click.Parameter, value: dt.datetime | None) -> dt.date | None:
    return value.date() if value is not None else None


RUNS = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
CAMPAIGN = click.option("--campaign", type=click.Path(path_type=Path), default=None, help="Prices and objective.")
AS_OF = click.option(
    "--as-of", type=click.DateTime(["%Y-%m-%d"]), callback=_day, metavar="DATE", default=None,
    help="Day that prices are judged on; default: the campaign's.",
)  # fmt: skip
LANG = click.option("--lang", default="en", show_default=True, help="Language of the document.")

CHOICE = click.option(
    "--choice", type=click.Path(path_type=Path), default=None,
    help="The choice.json that was confirmed, to be held against what the runs record.",
)  # fmt: skip


PIPE_COLUMNS = 160


def _out(what: str) -> Callable[[Any], Any]:
    return click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help=what)


@main.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Check this campaign file too, or alone."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(runs: tuple[Path, ...], campaign: Path | None, as_json: bool) -> None:
    """Check the RUNS: contract, hash chain, completeness, invariants; each finding names file and line.

    With --campaign also the campaign file; without RUNS that file alone. Exit code 0: nothing found (an open file is
    named, and is no finding), 1: findings.

    Example: reporter check runs/ --campaign campaign.toml
    """
    from reporter.check import CheckReport, check_campaign
    from reporter.check import check as check_runs

    if not runs and campaign is None:
        raise click.UsageError("name the RUNS, a campaign file, or both: reporter check runs/ --campaign campaign.toml")
    report = check_runs(runs) if runs else CheckReport(files=[], open_files=[], findings=[], flags=[])
    if campaign is not None:
        report = report._replace(findings=[*check_campaign(campaign), *report.findings])
    if as_json:
        _print_json(
            {
                "files": [
                    {"file": str(f.path), "records": f.record_count, "sealed": f.is_sealed} for f in report.files
                ],
                "findings": [finding._asdict() | {"file": str(finding.file)} for finding in report.findings],
                "flags": [flag._asdict() | {"file": str(flag.file)} for flag in report.flags],
            }
        )
    else:
        for finding in report.findings:
            click.echo(finding)
        for flag in report.flags:
            click.echo(f"note: {flag}")
        for file in report.files:
            state = f"sealed {file.head_digest}" if file.is_sealed else "open, tail unprotected"
            click.echo(f"{file.path}: {file.record_count} records, {state}")
        if campaign is not None and campaign not in {finding.file for finding in report.findings}:
            click.echo(f"{campaign}: a campaign, nothing found in it")
        click.echo(f"{len(report.findings)} finding(s)", err=True)
    raise click.exceptions.Exit(int(report.exit_code))


@main.command()
@RUNS
@CAMPAIGN
@CHOICE
@AS_OF
@LANG
@click.option("--json", "as_json", is_flag=True, help="Print the whole dossier as JSON.")
def summary(
    runs: tuple[Path, ...], campaign: Path | None, choice: Path | None, as_of: dt.date | None, lang: str, as_json: bool
) -> None:
    """Print the verdict on every configuration of the RUNS.

    Example: reporter summary runs/ --campaign campaign.toml
    """
    from reporter.dossier import dossier_json

    dossier = _dossier(runs, campaign, as_of, choice)
    if as_json:
        click.echo(dossier_json(dossier).decode(), nl=False)
    else:
        _print_summary(dossier, lang)
    _exit_where_newer(dossier)


@main.command()
@RUNS
@click.option("--campaign", type=click.Path(path_type=Path), required=True, help="Prices and objective.")
@AS_OF
@_out("File to write, e.g. choice.json.")
def choose(runs: tuple[Path, ...], campaign: Path, as_of: dt.date | None, out: Path) -> None:
    """Write which configuration of the RUNS is chosen, and why every other is not.

    Runs on test documents are left aside: what confirms a choice never makes it. Exit code 0 also where none is
    chosen: the file says so.

    Example: reporter choose runs/ --campaign campaign.toml -o choice.json
    """
    from reporter.choose import choose as choice
    from reporter.choose import choosing_files, chosen_row
    from reporter.writing import write_whole

    dossier = _dossier(tuple(choosing_files(runs)), campaign, as_of)
    write_whole(out, choice(dossier))
    click.echo(out)
    chosen = chosen_row(dossier.tables["candidates"].rows)
    if chosen is None:
        click.echo("none is chosen: the file says why", err=True)
    else:
        step = f"collector confirm protocol.toml --choice {out} --out runs/"
        click.echo(f"chosen: {chosen.labels['label']}; next: {step}", err=True)
    _exit_where_newer(dossier)


@main.command()
@RUNS
@CAMPAIGN
@CHOICE
@AS_OF
@LANG
@_out("File to write, e.g. dossier.html.")
def html(
    runs: tuple[Path, ...], campaign: Path | None, choice: Path | None, as_of: dt.date | None, lang: str, out: Path
) -> None:
    """Write the dossier of the RUNS as one page with its folder of styles and fonts.

    Example: reporter html runs/ --campaign campaign.toml -o dossier.html
    """
    from reporter.document import write_html

    dossier = _dossier(runs, campaign, as_of, choice)
    write_html(dossier, out, lang=lang)
    click.echo(out)
    _exit_where_newer(dossier)


@main.command()
@RUNS
@CAMPAIGN
@CHOICE
@AS_OF
@LANG
@click.option(
    "--attach", "attached", multiple=True, type=click.Choice(["texts"]),
    help="Attach also the texts: prompts, expected values and answers.",
)  # fmt: skip
@_out("File to write, e.g. dossier.pdf.")
def pdf(
    runs: tuple[Path, ...],
    campaign: Path | None,
    choice: Path | None,
    as_of: dt.date | None,
    lang: str,
    attached: tuple[str, ...],
    out: Path,
) -> None:
    """Write the dossier of the RUNS as a PDF with records, lock, campaign and dossier.json attached.

    Needs the system libraries of Pango; without them exit code 4 and the command that installs them.

    Example: reporter pdf runs/ --campaign campaign.toml -o dossier.pdf
    """
    import tempfile

    from reporter.attachments import attachments
    from reporter.document import write_pdf

    dossier = _dossier(runs, campaign, as_of, choice)
    with tempfile.TemporaryDirectory() as folder:
        files = attachments(runs, campaign, Path(folder), choice=choice, with_texts="texts" in attached)
        write_pdf(dossier, out, lang=lang, attachments=files)
    click.echo(out)
    _exit_where_newer(dossier)


@main.command()
@click.argument("samples", nargs=-1, required=True, type=click.Path(path_type=Path))
@AS_OF
@LANG
@click.option(
    "--attach", "attached", multiple=True, type=click.Choice(["texts"]),
    help="Publish also the texts: prompts, expected values, answers and the key of their hashes.",
)  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder to write, e.g. public.")
def site(samples: tuple[Path, ...], as_of: dt.date | None, lang: str, attached: tuple[str, ...], out: Path) -> None:
    """Write a site over the campaigns in SAMPLES: an index, and each dossier with its PDF, records and data.

    A sample is a campaign folder (campaign.toml beside runs/) or a folder of such folders. OUT is replaced whole; it
    must be new, empty or a site that this command wrote. Nothing of the texts is published unless --attach texts.

    Exit code 0: all campaigns are there, 1: one could not be read (the index says why) or is incomplete.

    Example: reporter site sample_runs -o public
    """
    from reporter.site import write_site

    built = write_site(samples, out, lang=lang, as_of=as_of, with_texts="texts" in attached)
    for note in built.notes:
        click.echo(note, err=True)
    click.echo(built.index_path)
    raise click.exceptions.Exit(int(ExitCode.FINDINGS if built.has_faults else ExitCode.FINE))


@main.command()
@click.argument("given", metavar="RUNS... SQL", nargs=-1)
@CAMPAIGN
@click.option("--tables", "only_tables", is_flag=True, help="List the tables instead of asking.")
@click.option("--json", "form", flag_value="json", help="Print a JSON list of objects; exact decimals are strings.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV.")
def query(given: tuple[str, ...], campaign: Path | None, only_tables: bool, form: str | None) -> None:
    """Answer one SELECT, the last argument, over the RUNS; with a campaign also over its charges.

    Nothing but these records can be read, and nothing can be written.

    Example: reporter query runs/ --campaign campaign.toml "select * from allocated_charges"
    """
    from reporter.query import as_csv, as_json, as_lines, table_list
    from reporter.query import query as ask

    if not only_tables and len(given) < 2:
        raise click.UsageError('name the RUNS and the question, in quotes: reporter query runs/ "select 1"')
    # the question stays a text: a path would lose one of two slashes
    answer = table_list() if only_tables else ask([Path(name) for name in given[:-1]], campaign, given[-1])
    if form == "json":
        click.echo(as_json(answer))
    elif form == "csv":
        click.echo(as_csv(answer), nl=False)
    else:
        for line in as_lines(answer):
            click.echo(line)


@main.command()
@RUNS
@CAMPAIGN
@click.option(
    "--to", type=click.Choice(["csv", "parquet", "focus"]), required=True,
    help="csv, parquet: every table; focus: the charges as paid and as allocated, as CSV under the names of FOCUS.",
)  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write.")
def export(runs: tuple[Path, ...], campaign: Path | None, to: Literal["csv", "parquet", "focus"], out: Path) -> None:
    """Write the RUNS' records and tables, and the campaign's charges, as files for other tools.

    No prompt, expected value or answer is in them.

    Example: reporter export runs/ --campaign campaign.toml --to focus -o costs
    """
    from reporter.export import export as write

    for path in write(runs, campaign, out, to=to):
        click.echo(path)


def _dossier(
    runs: tuple[Path, ...], campaign: Path | None, as_of: dt.date | None, choice: Path | None = None
) -> Dossier:
    """Return the dossier; a candidate that fits no record is told on stderr, with its line."""
    from collector.contract.campaign_file import read_campaign
    from reporter.assemble import build_dossier
    from reporter.candidates import unmeasured

    dossier = build_dossier(runs, campaign, as_of=as_of, choice=choice)
    if campaign is None:
        for beside in [path / "campaign.toml" for path in runs if (path / "campaign.toml").is_file()]:
            click.echo(f"note: {beside} is not read; add --campaign {beside} for prices and objective", err=True)
    else:
        finding = unmeasured(dossier, read_campaign(campaign))
        if finding is not None:
            click.echo(f"note: {finding}", err=True)
    return dossier


def _exit_where_newer(dossier: Dossier) -> None:
    """A dossier without some of the files is written, and says so by its exit code too."""
    newer = [notice.parameters["file"] for notice in dossier.notices if notice.key == "notice_newer_file"]
    if newer:
        click.echo(
            f"set aside, written by a newer version: {', '.join(newer)}\n    next: upgrade gpu-dossier", err=True
        )
        raise click.exceptions.Exit(int(ExitCode.FINDINGS))


def _print_json(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value, order="sorted"))


def _print_summary(dossier: Dossier, lang: str) -> None:
    """Print question, recommendation, the table of verdicts and the notices."""
    from rich.console import Console

    from reporter.summary import summary_lines, summary_table, times_table

    # a pipe has no width: nothing of a verdict may be cut there
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    for line in summary_lines(dossier, lang):
        console.print(line, markup=False, soft_wrap=True)
    console.print(summary_table(dossier, lang))
    times = times_table(dossier, lang)
    if times is not None:
        console.print()
        console.print(times)


if __name__ == "__main__":
    main()
