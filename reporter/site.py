"""A folder of pages over several campaigns: an index, each dossier with its PDF, its records and its data."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError, MissingDependency

from .assemble import build_dossier
from .attachments import attachments
from .candidates import unmeasured
from .document import DOSSIER_JSON, write_pdf, write_styles
from .dossier import Dossier, dossier_json
from .paper import media_type
from .render import Attached, SiteLinks, render
from .site_pages import Entry, about_page, index_page
from .translate import N_, Translator
from .watermark import watermark
from .writing import unwritable

ASSETS, DATA, PDF, INDEX, MARK = "assets", "data", "dossier.pdf", "index.html", "site.json"
SITE_FORMAT = 1
LEFT_BY_DESKTOPS = {".DS_Store", "Thumbs.db", "desktop.ini"}
"""Files that looking into a folder leaves there: nobody's work."""


class SiteCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign of a site: where it lies and what it is; `problem` says why it has no page."""

    slug: str
    dossier_id: str | None
    revision: int | None
    protocol_id: str | None
    records_digest: str | None
    problem: str | None


class SiteMark(msgspec.Struct, frozen=True, kw_only=True):
    """site.json: the campaigns, and the sha256 of every other file. Its presence marks a folder as a site of ours."""

    site_format: int
    campaigns: list[SiteCampaign]
    files: dict[str, str]


class Built(NamedTuple):
    """What `write_site` wrote, what a user should hear of, and whether a campaign is missing or incomplete."""

    index_path: Path
    notes: list[str]
    has_faults: bool


def write_site(
    samples: Sequence[Path], out: Path, *, lang: str = "en", as_of: dt.date | None = None, with_texts: bool = False
) -> Built:
    """Write the site whole: made beside `out`, then renamed into place. Same input, same bytes; no clock is read.

    A sample is a campaign folder (campaign.toml and runs/) or a folder of such folders. A campaign that cannot be read
    is listed with its fault and the others are built. Links are relative; no script, nothing from elsewhere.

    Raises DossierError where no campaign is found, where `out` is not empty and no site of ours, or holds files that
    the last site did not write, and where the place cannot be written; then `out` is as it was.
    """
    folders = campaign_folders(samples)
    place = out.resolve()
    _refuse_foreign(out, place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as fault:
        raise unwritable(out, fault) from fault
    try:
        made = beside / "new"
        notes, has_faults = _fill(made, folders, samples, lang=lang, as_of=as_of, with_texts=with_texts)
        _swap(made, place, beside / "old")
    except OSError as fault:
        raise unwritable(out, fault) from fault
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Built(out / INDEX, notes, has_faults)


def campaign_folders(samples: Sequence[Path]) -> list[Path]:
    """Return the campaign folders of the samples, each once: as given, within a folder by name.

    Raises DossierError for a sample that is no folder or holds no campaign.
    """
    found: dict[Path, Path] = {}
    for sample in samples:
        if not sample.is_dir():
            state = "is no folder" if sample.exists() else "does not exist"
            raise DossierError(f"{sample} {state}", next_step="name folders that hold campaigns")
        inside = sorted(path for path in sample.iterdir() if path.is_dir() and not path.name.startswith("."))
        folders = [sample] if _is_campaign(sample) else [path for path in inside if _is_campaign(path)]
        if not folders:
            raise DossierError(
                f"{sample} holds no campaign", next_step="name a folder with campaign.toml and runs/, or one of such"
            )
        for folder in folders:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def _is_campaign(folder: Path) -> bool:
    """A folder with one of the two and not the other is a campaign too: its fault is then listed."""
    return (folder / "campaign.toml").is_file() or (folder / "runs").is_dir()


def slugs(names: Sequence[str]) -> list[str]:
    """Return a name for each campaign's folder in an address: small letters, digits and dashes, each once."""
    taken: list[str] = [ASSETS]
    for name in names:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "campaign"
        candidates = (stem if n == 1 else f"{stem}-{n}" for n in range(1, len(taken) + 2))
        taken.append(next(slug for slug in candidates if slug not in taken))
    return taken[1:]


def _refuse_foreign(out: Path, place: Path) -> None:
    """Refuse to replace anything that the last site did not write."""
    if place.exists() and not place.is_dir():
        raise DossierError(f"{out} is a file", next_step="name a folder for the site")
    held = [path for path in place.rglob("*") if not path.is_dir() and path.name not in LEFT_BY_DESKTOPS]
    here = {path.relative_to(place).as_posix() for path in held}
    if not here:
        return
    try:
        mark = msgspec.json.decode((place / MARK).read_bytes(), type=SiteMark)
    except (OSError, msgspec.MsgspecError):
        raise DossierError(
            f"{out} is not empty and is no site written by this command", next_step="name an empty or a new folder"
        ) from None
    if foreign := sorted(here - set(mark.files) - {MARK}):
        raise DossierError(
            f"{out} holds what the site did not write: {', '.join(foreign[:3])}", next_step="move it elsewhere first"
        )


def _swap(made: Path, place: Path, old: Path) -> None:
    """Put the new folder in place of the old one; the old one comes back where that fails."""
    if place.exists():
        place.rename(old)
    try:
        made.rename(place)
    except BaseException:
        if old.exists():
            old.rename(place)
        raise


def _fill(
    made: Path, folders: Sequence[Path], samples: Sequence[Path], *, lang: str, as_of: dt.date | None, with_texts: bool
) -> tuple[list[str], bool]:
    """Write everything under `made`; return the notes and whether a campaign has a fault."""
    made.mkdir()
    write_styles(made / ASSETS, extra=("site.css",))
    entries, notes = [], []
    for folder, slug in zip(folders, slugs([folder.resolve().name for folder in folders]), strict=True):
        entry, said = _campaign(folder, slug, made, lang=lang, as_of=as_of, with_texts=with_texts)
        entries.append(entry)
        notes += said
    if any(entry.dossier is not None and entry.dossier.has_example_prices for entry in entries):
        (made / ASSETS / "watermark.svg").write_text(watermark(Translator(lang)), encoding="utf-8")
    about = list(_about(samples, made, lang))
    (made / INDEX).write_text(index_page(entries, about=about, lang=lang, assets=ASSETS), encoding="utf-8")
    (made / MARK).write_bytes(msgspec.json.format(msgspec.json.encode(_mark(entries, made)), indent=1) + b"\n")
    return notes, any(entry.problem or entry.newer_files for entry in entries)


def _about(samples: Sequence[Path], made: Path, lang: str) -> Iterator[tuple[str, str]]:
    """Write the README of each folder of campaigns as a page; yield its file name and its title."""
    named = [sample for sample in samples if not _is_campaign(sample) and (sample / "README.md").is_file()]
    for sample, slug in zip(named, slugs([sample.resolve().name for sample in named]), strict=True):
        name = f"about-{slug}.html"
        title, page = about_page((sample / "README.md").read_text(encoding="utf-8"), lang=lang, assets=ASSETS)
        (made / name).write_text(page, encoding="utf-8")
        yield name, title


def _campaign(
    folder: Path, slug: str, made: Path, *, lang: str, as_of: dt.date | None, with_texts: bool
) -> tuple[Entry, list[str]]:
    """Write one campaign's pages and data; a foreseeable fault becomes an entry with a problem and leaves no folder."""
    target, campaign, runs = made / slug, folder / "campaign.toml", [folder / "runs"]
    name = folder.resolve().name
    try:
        loaded = read_campaign(campaign)
        dossier = build_dossier(runs, campaign, as_of=as_of)
        finding = unmeasured(dossier, loaded)
        notes = [f"note: {finding}"] if finding is not None else []
        (target / DATA).mkdir(parents=True)
        with tempfile.TemporaryDirectory() as made_here:
            files = attachments(runs, campaign, Path(made_here), with_texts=with_texts)
            no_pdf = _pdf(dossier, target / PDF, lang, files)
            for file in files:
                shutil.copyfile(file, target / DATA / file.name)
        (target / DATA / DOSSIER_JSON).write_bytes(dossier_json(dossier))
        listed = listed_files(target / DATA, lang)
        links = SiteLinks(home=f"../{INDEX}", pdf=None if no_pdf else PDF)
        page = render(dossier, lang=lang, medium="screen", assets=f"../{ASSETS}", attached=listed, site=links)
        (target / INDEX).write_text(page, encoding="utf-8")
    except (DossierError, OSError) as fault:
        shutil.rmtree(target, ignore_errors=True)
        problem = _without_places(str(fault), folder)
        return Entry(slug, name, None, 0, None, problem), [f"{name}: {fault}"]
    if no_pdf:
        notes.append(f"{name}: no PDF: {no_pdf}")
    return Entry(slug, name, dossier, len(listed), no_pdf, None), notes


def _pdf(dossier: Dossier, out: Path, lang: str, files: Sequence[Path]) -> str | None:
    """Write the PDF; return why there is none where a package or a system library is missing."""
    try:
        write_pdf(dossier, out, lang=lang, attachments=files)
    except MissingDependency as missing:
        return missing.message
    return None


def listed_files(folder: Path, lang: str) -> list[Attached]:
    """Return what the annex says of each file of a campaign, with a link to it."""
    translator, entries = Translator(lang), []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        size = translator.number(len(content)) + " " + translator.text(N_("bytes"))
        relationship = translator.text(N_("data") if path.name == DOSSIER_JSON else N_("source"))
        digest = hashlib.sha256(content).hexdigest()
        href = f"{folder.name}/{path.name}"
        entries.append(Attached(path.name, size, digest, media_type(path.name), relationship, href))
    return entries


def _without_places(message: str, folder: Path) -> str:
    """Return a message that names the campaign's folder and no folder of this machine above it."""
    name = folder.resolve().name
    for place in {str(folder.resolve()), str(folder.absolute()), str(folder)} - {".", name}:
        message = message.replace(place, name)
    return message


def _mark(entries: Sequence[Entry], made: Path) -> SiteMark:
    files = sorted(path for path in made.rglob("*") if path.is_file())
    return SiteMark(
        site_format=SITE_FORMAT,
        campaigns=[
            SiteCampaign(
                slug=entry.slug,
                dossier_id=entry.dossier.dossier_id if entry.dossier else None,
                revision=entry.dossier.revision if entry.dossier else None,
                protocol_id=entry.dossier.protocol_id if entry.dossier else None,
                records_digest=entry.dossier.records_digest if entry.dossier else None,
                problem=entry.problem,
            )
            for entry in entries
        ],
        files={path.relative_to(made).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    )
