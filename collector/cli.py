"""The command line of the collector: parses, calls, prints. Anything heavy is imported inside a command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collector.contract.errors import DossierError, ExitCode

if TYPE_CHECKING:
    from collector.contract.records import Device
    from collector.freeze import FrozenProtocol
    from collector.run_options import RunOptions, RunReport


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


_allow_commands = click.option(
    "--allow-commands",
    is_flag=True,
    help="Run the commands that the protocol names: those that start its servers, and its scorer (a command or a "
    "Python function). Read them first.",
)


@main.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--kind",
    type=click.Choice(["extraction", "answers", "ranking"]),
    default="extraction",
    show_default=True,
    help="Kind of task: fields out of documents, questions with known answers, or rankings of candidates.",
)
@click.option(
    "--tier",
    type=click.Choice(["labelled", "semi-structured", "prose"]),
    default=None,
    help="Only the starter's documents of this tier.",
)
@click.option("--small", is_flag=True, help="Only the labelled tier's first documents: 12, 24 and 12 of the roles.")
@click.option("--model", default=None, help="Hugging Face id or folder to write into the protocol.")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    default=None,
    help="Your documents: a folder of .txt and .md files, which gets a labelling sheet; or a .csv or .jsonl file.",
)
@click.option("--permission", default=None, help="With --from: who permits the use of the documents, written where.")
@click.option("--review", default=None, help="With --from: how the expected values were reviewed, by whom and when.")
def init(
    folder: Path,
    kind: str,
    tier: str | None,
    small: bool,
    model: str | None,
    source: Path | None,
    permission: str | None,
    review: str | None,
) -> None:
    """Write a protocol, a campaign and documents into DIR, ready to run as they are.

    With --from, the documents are yours: `collector check` then says what is still to be labelled and written. Nothing
    that is there already is overwritten.

    Example: collector init trial --from my-invoices/
    """
    from collector.init import init_folder

    if source is not None and (tier or small):
        raise click.UsageError("--tier and --small choose among the starter's documents; leave them out with --from")
    if small and tier not in (None, "labelled"):
        raise click.UsageError("--small is of the labelled tier")
    if source is not None:
        _init_from(folder, source, kind=kind, model=model, permission=permission, review=review)
    elif permission is not None or review is not None:
        raise click.UsageError("--permission and --review speak of your own documents: name them with --from")
    else:
        for path in init_folder(folder, kind=kind, tier=tier, is_small=small, model=model):
            click.echo(path)
    click.echo(f"next: collector check {folder / 'protocol.toml'}", err=True)


def _init_from(
    folder: Path, source: Path, *, kind: str, model: str | None, permission: str | None, review: str | None
) -> None:
    from collector.init_from import init_from

    statements = {"permission": permission, "review": review}
    written = init_from(folder, source, kind=kind, model=model, statements=statements)
    for path in written.paths:
        click.echo(path)
    for notice in written.notices:
        click.echo(notice, err=True)


@main.command()
@click.option("--protocol", type=click.Path(path_type=Path), default=None, help="Also look for this trial's model.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path(), help="Where records will be written. Default: here."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def doctor(protocol: Path | None, out: Path, as_json: bool) -> None:
    """Say what is installed, what this machine can measure, what is missing and how to get it.

    Nothing is loaded onto a card and nothing is downloaded. Exit code 0: a run is possible; 4: a package is missing
    without which nothing can be measured.

    Example: collector doctor --protocol trial/protocol.toml
    """
    from collector.doctor import examine_machine
    from collector.doctor_text import report_lines

    report = examine_machine(out, protocol=protocol)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(report).decode())
    else:
        for line in report_lines(report):
            click.echo(line)
    if report.missing_for_a_run:
        raise click.exceptions.Exit(int(ExitCode.MISSING_DEPENDENCY))


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option("--no-tokens", is_flag=True, help="Do not count the prompts' tokens; needs no model.")
def check(protocol: Path, no_tokens: bool) -> None:
    """Refuse everything about PROTOCOL that can be refused before money is spent.

    Each finding names file, line and next step. A notice is refused by nothing: a value that looks mistyped, or one of
    the campaign beside PROTOCOL that is still to be written. Where nothing is found, it says what will be measured:
    documents, the longest prompt, which server answers for which variant, at which loads. No server is started or
    asked. Exit code 0: nothing found but notices, 1: findings.

    Example: collector check trial/protocol.toml
    """
    from collector.plan_text import load_lines
    from collector.protocol_check import examine

    report = examine(protocol, with_tokenizer=not no_tokens)
    for notice in report.notices:
        click.echo(f"notice: {notice}")
    if report.findings:
        for finding in report.findings:
            click.echo(finding)
        click.echo(f"refused: {len(report.findings)} finding(s)", err=True)
        raise click.exceptions.Exit(int(ExitCode.FINDINGS))
    roles = ", ".join(f"{count} {role}" for role, count in sorted(report.role_counts.items()))
    click.echo(f"{protocol}: nothing to refuse")
    click.echo(f"documents: {roles}")
    for line in report.corpus:
        click.echo(line)
    if report.longest_prompt_tokens is None:
        click.echo("prompts: not counted")
    elif report.protocol is not None:
        limit = "not known" if report.context_limit_tokens is None else f"{report.context_limit_tokens} tokens"
        output = report.protocol.generation.max_new_tokens
        texts, added = ("texts", "") if report.is_embedding else ("prompts", f" + {output} output tokens")
        click.echo(f"{texts}: longest {report.longest_prompt_tokens} tokens{added}; context {limit}")
    if report.protocol is not None:
        for line in load_lines(report.protocol):
            click.echo(line)
    click.echo("lock: agrees" if report.is_frozen else "lock: not frozen yet")


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Default: campaign.toml beside PROTOCOL."
)
@click.option("--no-tokens", is_flag=True, help="Do not count the prompts' tokens; needs no model.")
def freeze(protocol: Path, campaign: Path | None, no_tokens: bool) -> None:
    """Check PROTOCOL and write its lock and salt beside it; a run accepts nothing that drifted from the lock.

    Prints protocol_id (what is asked and how it is judged), plan_id (of what, in which order) and the digest of the
    campaign's objective. Freezing again is safe: the salt stays, and the ids change only with the content.

    Example: collector freeze trial/protocol.toml
    """
    from collector.clock import SystemClock
    from collector.freeze import freeze as freeze_protocol
    from collector.freeze import judging_again
    from collector.lock import frozen_ids, lock_path
    from collector.server_rules import used_servers

    before = frozen_ids(lock_path(protocol))
    lock = freeze_protocol(protocol, campaign=campaign, clock=SystemClock(), with_tokenizer=not no_tokens)
    click.echo(f"protocol_id {lock.protocol_id}")
    click.echo(f"plan_id     {lock.plan_id}")
    click.echo(f"objective   {lock.objective_digest or 'not declared: no campaign file'}")
    if before is not None and before[0] != lock.protocol_id:
        click.echo(f"this is a new protocol: runs of {before[0][:12]}… stay with the old one", err=True)
    elif before is not None and before[1] != lock.plan_id:
        click.echo(f"the protocol is the same, the plan is new: runs of plan {before[1][:12]}… stay with it", err=True)
    if again := judging_again(protocol, lock, before):
        click.echo(again, err=True)
    is_starting = any(server.start for server in used_servers(lock.plan))
    step = f"collector run {protocol} --out {protocol.parent / 'runs'}{' --allow-commands' if is_starting else ''}"
    click.echo(f"wrote {lock_path(protocol)}; next: {step}", err=True)


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option(
    "--pilot",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Measure N development documents with each variant now, and say what the plan will take.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Folder to keep the pilot's records in. Without --pilot: take what runs of this plan have measured there.",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 ...")
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Default: campaign.toml beside PROTOCOL."
)
@_allow_commands
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def plan(
    protocol: Path,
    pilot: int | None,
    out: Path | None,
    device: str,
    campaign: Path | None,
    allow_commands: bool,
    as_json: bool,
) -> None:
    """Say what `collector run` will do with a frozen PROTOCOL and in which order, and what it will take.

    Each concurrency and each rate of a server is a pass of its own. Hours, rental money, disk and whether the deadline
    holds come from measured passes, carried over to all documents. Exit code 5: a variant failed in the pilot.

    Example: collector plan trial/protocol.toml --pilot 5
    """
    import tempfile

    from collector.contract.campaign_file import read_campaign
    from collector.estimate import measured_in
    from collector.freeze import campaign_path, read_frozen
    from collector.pilot import pilot_options, plan_report, run_files
    from collector.plan_text import plan_lines, plan_values
    from collector.processes import source_commit

    frozen = read_frozen(protocol, campaign)
    source = campaign_path(protocol, campaign)
    known = read_campaign(source).campaign if source is not None else None
    with tempfile.TemporaryDirectory(prefix="collector-pilot-") as temporary:
        files, is_stopped = run_files(out) if out is not None and pilot is None else [], False
        if pilot is not None:
            options = pilot_options(frozen.lock, pilot, device, source_commit())
            options = options._replace(allow_commands=allow_commands)
            measured, is_stopped = _ran(frozen, options, out or Path(temporary))
            files = [measured.path]
        report = plan_report(
            frozen.lock, measured_in(files, frozen.lock.plan_id), wanted=pilot or 0, campaign=known,
            devices=_devices(frozen, device) if known is not None else (), folder=out or protocol.parent,
        )  # fmt: skip
        if pilot is not None and out is not None:
            click.echo(f"the pilot's records: {files[0]}", err=True)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(plan_values(report)).decode())
    else:
        for line in plan_lines(report):
            click.echo(line)
    if is_stopped:
        raise click.exceptions.Exit(130)
    if report.failed:
        raise click.exceptions.Exit(int(ExitCode.DEVICE))


def duration_s(text: str) -> float:
    """Return the seconds of a duration such as `2h`, `90m`, `1h30m` or `45s`."""
    import re

    number = r"(?:(\d+(?:\.\d+)?)"
    found = re.fullmatch(f"{number}h)?{number}m)?{number}s)?", text)
    if not text or found is None:
        raise click.BadParameter(f"{text!r} is no duration; write 2h, 90m, 1h30m or 45s")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def _acknowledge_to(path: Path | None) -> Callable[[int], None] | None:
    if path is None:
        return None
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def acknowledge(seq: int) -> None:
        os.write(descriptor, f"{seq}\n".encode())

    return acknowledge


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the records.")
@click.option("--variant", "variants", multiple=True, help="Run only this variant; repeatable. The file stays open.")
@click.option(
    "--series",
    type=click.Choice(
        ["reference", "weights", "compute", "cache", "batch", "concurrency", "rate", "engine", "several"]
    ),
    multiple=True,
    help="Run only the passes in which this factor grows, such as concurrency (requests at a time) or rate (arrivals "
    "per second); repeatable. The file stays open.",
)
@click.option("--resume", is_flag=True, help="Continue the newest open run of this plan in --out.")
@click.option(
    "--stop-after",
    type=duration_s,
    metavar="DURATION",
    default=None,
    help="Stop after this time, e.g. 2h; resume goes on.",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 ...")
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Default: campaign.toml beside PROTOCOL."
)
@click.option("--rental", default=None, metavar="ID", help="The campaign's rental that pays for this run.")
@_allow_commands
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--acknowledged", type=click.Path(path_type=Path), default=None, hidden=True)
def run(
    protocol: Path,
    out: Path,
    variants: tuple[str, ...],
    series: tuple[str, ...],
    resume: bool,
    stop_after: float | None,
    device: str,
    campaign: Path | None,
    rental: str | None,
    allow_commands: bool,
    as_json: bool,
    acknowledged: Path | None,
) -> None:
    """Measure every pass of a frozen PROTOCOL on this machine and append the records to a file in --out.

    What is most useful runs first: the reference, its repeat, each variant once, then repetitions, batches,
    concurrencies and rates, and at the end each variant is loaded again and asked again. A server that the protocol
    starts is started and stopped by each pass. Ctrl-C, a lost terminal and --stop-after leave the file open; --resume
    continues it, and measures again what a lost server left. Prints the file, and how each pass ended. Exit code 5: a
    pass or a reload failed, its failure is recorded; 130: stopped by a signal.

    Example: collector run trial/protocol.toml --out runs/ --stop-after 2h
    """
    from collector.freeze import read_frozen
    from collector.processes import source_commit
    from collector.run_files import newest_unsealed
    from collector.run_options import RunOptions

    frozen = read_frozen(protocol, campaign)
    if not resume and (begun := newest_unsealed(out, frozen.lock.plan_id, "validation")):
        click.echo(
            f"note: {begun} is an open run of this plan; --resume continues it. This starts a new one.", err=True
        )
    options = RunOptions(
        device=device, only=variants, only_series=series, is_resuming=resume, stop_after_s=stop_after,
        allow_commands=allow_commands, commit=source_commit(),
    )  # fmt: skip
    options = _with_rental(options, frozen, protocol, campaign, rental, out)
    _measure(frozen, options, out, as_json=as_json, acknowledged=acknowledged)


@main.command()
@click.argument("protocol", type=click.Path(path_type=Path))
@click.option(
    "--choice", type=click.Path(path_type=Path), required=True, help="What `reporter choose` wrote: choice.json."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the records.")
@click.option("--resume", is_flag=True, help="Continue the open look in --out; it stays the same look.")
@click.option("--stop-after", type=duration_s, metavar="DURATION", default=None, help="Stop after this time, e.g. 2h.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 ...")
@click.option(
    "--campaign", type=click.Path(path_type=Path), default=None, help="Default: campaign.toml beside PROTOCOL."
)
@click.option("--rental", default=None, metavar="ID", help="The campaign's rental that pays for this run.")
@_allow_commands
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def confirm(
    protocol: Path,
    choice: Path,
    out: Path,
    resume: bool,
    stop_after: float | None,
    device: str,
    campaign: Path | None,
    rental: str | None,
    allow_commands: bool,
    as_json: bool,
) -> None:
    """Put the choice to the test documents of a frozen PROTOCOL: the reference and the chosen configuration, once.

    Every start without --resume is a look at the test documents and is counted, over the files in --out. Give the
    folder that holds all runs of this protocol. After a second look the test set is validation.

    Example: collector confirm trial/protocol.toml --choice choice.json --out runs/
    """
    from collector.confirm import REFERENCE_RUNS, prepare_look, read_choice, warning_before
    from collector.environment import deciding_engine, require_device, resolve_device
    from collector.freeze import read_frozen
    from collector.machine import ThisMachine
    from collector.processes import source_commit
    from collector.run_options import RunOptions

    frozen = read_frozen(protocol, campaign)
    plan = frozen.lock.plan
    decides = deciding_engine(plan.engine, plan.servers, plan.variants)
    resolved = resolve_device(device, decides)
    require_device(resolved, decides)
    detected = ThisMachine().detect(resolved, threads=plan.engine.threads)
    look = prepare_look(read_choice(choice), frozen.lock, detected, out, is_resuming=resume)
    if (warning := warning_before(look)) is not None:
        click.echo(f"warning: {warning}", err=True)
    options = RunOptions(
        stage="test", device=device, configurations=look.configurations, reference_runs=REFERENCE_RUNS,
        opening=look.opening, is_resuming=resume, stop_after_s=stop_after,
        allow_commands=allow_commands, commit=source_commit(),
    )  # fmt: skip
    options = _with_rental(options, frozen, protocol, campaign, rental, out)
    _measure(frozen, options, out, as_json=as_json)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--protocol", type=click.Path(path_type=Path), required=True, help="The frozen protocol whose rules judge now."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the records.")
@_allow_commands
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def score(runs: tuple[Path, ...], protocol: Path, out: Path, allow_commands: bool, as_json: bool) -> None:
    """Judge the answers of RUNS again by a frozen protocol's present rules and scorer; no model is asked.

    Each finished run gives one new file that names it; give both to the reporter, which takes the newer judgements.
    Needs the texts files. Where fields, expected values or rules changed since the run, that is a new protocol: judge
    all its runs again. Exit code 1: some answers have no judgement.

    Example: collector score runs/ --protocol trial/protocol.toml --out runs/
    """
    from collector.clock import SystemClock
    from collector.freeze import read_frozen
    from collector.score import score_runs

    report = score_runs(runs, read_frozen(protocol), out, clock=SystemClock(), allow_commands=allow_commands)
    for left in report.left_out:
        click.echo(f"note: {left.path} {left.reason}", err=True)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(report, enc_hook=str).decode())
    else:
        for one in report.rescored:
            click.echo(one.path)
            click.echo(f"{one.source.name}: {one.scores} judged, {one.changed} otherwise than before")
            if one.failures:
                click.echo(f"{one.failures} without a judgement: its scorer failed")
            click.echo(f"sealed {one.head_digest}")
    if any(one.is_new_protocol for one in report.rescored):
        click.echo(
            "judged under a new protocol: what is expected or how it is judged is not what the run had", err=True
        )
    if any(one.failures for one in report.rescored):
        raise click.exceptions.Exit(int(ExitCode.FINDINGS))


def _with_rental(
    options: RunOptions, frozen: FrozenProtocol, protocol: Path, campaign: Path | None, wanted: str | None, out: Path
) -> RunOptions:
    """Name the rental that pays for the run, and say what is left of it and whether the run fits."""
    from collector.clock import SystemClock
    from collector.freeze import campaign_path
    from collector.pilot import run_span
    from collector.plan_text import rental_line
    from collector.rental import find_rental

    if wanted is None and campaign_path(protocol, campaign) is None:
        return options
    now = SystemClock().utc()
    found = find_rental(protocol, campaign, wanted, _devices(frozen, options.device), now)
    if found.notice is not None:
        click.echo(f"note: {found.notice}", err=True)
    left_h = found.left(now)
    if found.rental_id is not None and left_h is not None:
        click.echo(rental_line(found.rental_id, left_h, run_span(frozen.lock, options, out)), err=True)
    return options._replace(rental_id=found.rental_id)


def _devices(frozen: FrozenProtocol, device: str) -> list[Device]:
    from collector.environment import deciding_engine, require_device, resolve_device
    from collector.machine import ThisMachine

    plan = frozen.lock.plan
    decides = deciding_engine(plan.engine, plan.servers, plan.variants)
    resolved = resolve_device(device, decides)
    require_device(resolved, decides)
    return ThisMachine().detect(resolved, threads=plan.engine.threads).devices


def _measure(
    frozen: FrozenProtocol, options: RunOptions, out: Path, *, as_json: bool, acknowledged: Path | None = None
) -> None:
    """Run what the options say, print what was done, and exit by how it went."""
    report, is_stopped = _ran(frozen, options, out, acknowledged)
    _print_report(report, as_json=as_json)
    if report.head_digest is None and report.stopped_by is not None:
        click.echo(f"to go on: {_same_command_resuming()}", err=True)
    if is_stopped:
        raise click.exceptions.Exit(130)
    if report.has_failed_reload or any(ending.outcome == "failed" for ending in report.endings.values()):
        raise click.exceptions.Exit(int(ExitCode.DEVICE))


def _same_command_resuming() -> str:
    """Return the command of this start with --resume; a time after which to stop is for each start to say."""
    import shlex

    from click.core import ParameterSource

    context = click.get_current_context()
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in ("resume", "stop_after"):
            continue
        value = context.params[name]
        for one in value if isinstance(value, tuple) else (value,):
            option = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
            words += option if one is True else [*option, str(one)]
    return shlex.join([*words, "--resume"])


def _ran(
    frozen: FrozenProtocol, options: RunOptions, out: Path, acknowledged: Path | None = None
) -> tuple[RunReport, bool]:
    """Return what a run left, and whether a signal stopped it."""
    from collector.clock import SystemClock
    from collector.machine import ThisMachine
    from collector.model_folder import require_model_folder
    from collector.processes import ProcessWorkerFactory
    from collector.progress_lines import ProgressLines, stopping_on_signals
    from collector.runner import Run

    if frozen.protocol.engine.name != "scripted" or frozen.protocol.servers:
        require_model_folder(frozen.protocol.model, frozen.base_dir)
    with ProgressLines() as progress, stopping_on_signals() as received:
        report = Run(
            frozen,
            options,
            clock=SystemClock(),
            factory=ProcessWorkerFactory(),
            machine=ThisMachine(),
            watcher=progress,
            stop_signal=lambda: received[0] if received else None,
            on_acknowledged=_acknowledge_to(acknowledged),
        ).run(out)
    return report, bool(received)


def _print_report(report: RunReport, *, as_json: bool) -> None:
    if as_json:
        import msgspec

        passes = [{"label": label, **ending._asdict()} for label, ending in report.endings.items()]
        result = {**report._asdict(), "path": str(report.path), "passes": passes}
        result["steps_bytes"] = _steps_bytes(report.path)
        del result["endings"]
        click.echo(msgspec.json.encode(result).decode())
        return
    click.echo(report.path)
    for label, ending in report.endings.items():
        click.echo(f"{label}: {ending.words}")
    for found in report.reloads.values():
        click.echo(found)
    if steps_bytes := _steps_bytes(report.path):
        from collector.contract.steps import steps_path

        click.echo(f"the time of every chunk or token: {steps_path(report.path).name}, {steps_bytes:,} bytes")
    if report.left:
        click.echo(f"not measured: {', '.join(report.left)}")
    if report.head_digest is not None:
        click.echo(f"sealed {report.head_digest}")
    else:
        click.echo(f"open{f', {report.stopped_by}' if report.stopped_by else ''}; continue with --resume")


def _steps_bytes(run_file: Path) -> int:
    from collector.contract.steps import steps_path

    steps = steps_path(run_file)
    return steps.stat().st_size if steps.exists() else 0


if __name__ == "__main__":
    main()
