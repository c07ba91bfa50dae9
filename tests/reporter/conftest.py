"""The reporter's tests keep their cache out of the user's folder; a campaign file and sentences in English for all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.contract.campaign_file import read_campaign
from reporter import figures
from reporter.assemble import dossier_of
from reporter.dossier import Dossier, Sentence
from reporter.load import open_records


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


CAMPAIGN_HEAD = """\
format = 1
question = "Which machine should read our invoices?"
dossier_id = "SD-2026-001"
as_of = {as_of}
issued = 2026-01-31
corpora_wanted = {corpora}
documents_per_corpus = {documents}
{top}
[objective]
prefer = "{prefer}"
tie_percent = "{tie}"
"""


def candidate_toml(name: str, variant: str, device: str, offers: list[str]) -> str:
    listed = ", ".join(f'"{offer}"' for offer in offers)
    return (
        f'[[candidate]]\nid = "{name}"\nlabel = "{name}"\nvariant = "{variant}"\ndevice = "{device}"\n'
        f"offers = [{listed}]\n"
    )


def offer_toml(name: str, device: str, basis: str, valid_until: str, prices: dict[int, str], more: str) -> str:
    lines = "".join(f'price_{days}_days = "{price}"\n' for days, price in prices.items())
    return (
        f'[[offer]]\nid = "{name}"\nprovider = "Example Cloud"\ndevice = "{device}"\npricing_class = "quote"\n'
        f'currency = "EUR"\n{lines}tax_percent = "19"\nbasis = "{basis}"\nsource = "quote 17"\n'
        f"retrieved = 2026-01-05\nvalid_until = {valid_until}\n{more}"
    )


class CampaignText:
    """Builds a campaign.toml: candidates, then offers, then the calendar."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.candidates: list[str] = []
        self.offers: list[str] = []
        self.calendar = ""

    def candidate(self, name: str, variant: str, *offers: str, device: str = "Example CPU 2 cores") -> CampaignText:
        self.candidates.append(candidate_toml(name, variant, device, list(offers)))
        return self

    def offer(
        self, name: str, prices: dict[int, str], *, device: str = "Example CPU 2 cores", basis: str = "quoted",
        valid_until: str = "2026-02-14", more: str = "",
    ) -> CampaignText:  # fmt: skip
        self.offers.append(offer_toml(name, device, basis, valid_until, prices, more))
        return self

    def write(
        self, *, prefer: str = "cheapest", tie: str = "0", corpora: int = 1, documents: int = 24, top: str = "",
        as_of: str = "2026-01-31",
    ) -> Path:  # fmt: skip
        head = CAMPAIGN_HEAD.format(
            prefer=prefer, tie=tie, corpora=corpora, documents=documents, top=top, as_of=as_of
        )  # fmt: skip
        self.path.write_text("\n".join([head, *self.candidates, *self.offers, self.calendar]), encoding="utf-8")
        return self.path


@pytest.fixture
def campaign_text(tmp_path: Path) -> CampaignText:
    """A campaign.toml to fill: `campaign_text.candidate("A", "fp32", "o1").offer("o1", {3: "540.00"}).write()`."""
    return CampaignText(tmp_path / "campaign.toml")


@pytest.fixture(scope="session")
def said() -> Callable[[Dossier, Sentence], str]:
    """Print a sentence of a dossier in English, with plain spaces."""
    from reporter.summary import plain_view

    def say(dossier: Dossier, sentence: Sentence) -> str:
        return plain_view(dossier, "en").say_plain(sentence).replace("\u00a0", " ")

    return say


class Decider:
    """Makes dossiers of sets of records that are written and measured once per test session."""

    def __init__(self, kit: Any, folder: Callable[[str], Path]) -> None:
        self._kit = kit
        self._folder = folder
        self._opened: dict[str, Any] = {}

    def __call__(
        self, name: str, campaign: Path | None, *, write: Callable[[Any, Path], object] | None = None,
        as_of: dt.date | None = None,
    ) -> Dossier:  # fmt: skip
        """Return the dossier of the set `name` under a campaign; `write(kit, runs)` writes a set other than `plain`."""
        if name not in self._opened:
            runs = self._folder("records") / "runs"
            (write or (lambda kit, folder: kit(folder)))(self._kit, runs)
            store = open_records([runs])
            self._opened[name] = store, figures.build(store)
        read = read_campaign(campaign).campaign if campaign else None
        return dossier_of(*self._opened[name], read, as_of=as_of)

    def close(self) -> None:
        for store, _ in self._opened.values():
            store.close()


@pytest.fixture(scope="session")
def decide(tmp_path_factory: pytest.TempPathFactory, campaign_records: Any) -> Iterator[Decider]:
    """`decide("plain", campaign_path)`: the dossier of the plain campaign of records, quickly."""
    decider = Decider(campaign_records, tmp_path_factory.mktemp)
    yield decider
    decider.close()
