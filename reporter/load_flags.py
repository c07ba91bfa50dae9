"""What must be known of a load before its numbers: client, counts, cache, prompts, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .book import Book, ref, row
from .dossier import Row, Sentence, number
from .load import Store
from .load_series import has_lost_too_many, has_reused, is_served, reused, series_rows
from .load_wording import LOAD_WORDS
from .statistics import MINIMUM_N
from .wording import sentence

GRAIN = "one row per (pass of a load, what a reader must know of it)"
MOST_TOKENS_PER_CHUNK = 1.1
"""Above, a gap between chunks is no gap between tokens."""
MOST_DECODE_FACTOR = 1.1
"""Mean gap over time per token, beyond which, or below its inverse, the two contradict one another."""
MOST_DRIFT_PERCENT = 10.0
"""Change of one configuration between its first and its last pass that puts the whole campaign in doubt."""
NOTICED = (
    "client_limit", "late_sends", "cache_reuse", "failing", "decode_differs", "prompts_differ", "prompts_unknown",
    "prompt_count", "two_counts", "estimated",
)  # fmt: skip
"""Flags that are said among the notices of the dossier too; the others stand in the section alone."""
CLOCK_STEP_S = 30
"""Seconds by which the two clocks of a pass may differ: writing its first and last line takes some of them."""


class Flag(NamedTuple):
    """One thing to know, and its sentence; `part` tells several of one name apart."""

    name: str
    said: Sentence
    part: str = ""


def put_flags(book: Book) -> None:
    """Add the table `load_flags`."""
    rows = [
        row(
            f"{found.key}~{flag.name}{flag.part}",
            {name: found.labels[name] for name in ("label", "configuration_key", "loop", "repetition")}
            | {"flag": flag.name},
            {},
            flag.said,
        )
        for found in series_rows(book, is_judged=False)
        for flag in flags_of(book, found)
    ]
    book.put("load_flags", GRAIN, rows)


def flags_of(book: Book, found: Row) -> Iterator[Flag]:
    """Yield what must be known of one pass, the worst first."""
    if is_served(found):
        yield from _client(book, found)
        if has_reused(book, found):
            figure = reused(book, found)
            assert figure is not None
            yield Flag("cache_reuse", sentence("flag_cache_reuse", cached=ref(figure.figure_id)))
        if has_lost_too_many(book, found):
            yield Flag("failing", sentence("flag_failing", failed=ref(found.cells["failed_percent"])))
        yield from _prompts(book, found)
        yield from _counts(book, found)
    yield from _decode(book, found)
    yield from _outcomes(book, found)
    yield from _window(book, found)


def load_notices(book: Book, store: Store) -> list[Sentence]:
    """Return the notices: drift over the campaign first, then the flags that put a comparison in doubt."""
    said = [*_drift(book), *(_clock_steps(store) if book.rows("load_series") else ())]
    for name in NOTICED:
        labels = dict.fromkeys(r.labels["label"] for r in book.rows("load_flags") if r.labels["flag"] == name)
        if labels:
            said.append(sentence(f"notice_{name}", labels=", ".join(labels)))
    return said


def _client(book: Book, found: Row) -> Iterator[Flag]:
    client = book.row("load_clients", found.key)
    if client is None:
        return
    if client.labels["is_limit"] == "yes":
        for reason in client.labels["limit_reasons"].split("; "):
            if reason == "late_sends" and "rate_per_s" in found.cells:
                delay, rate = ref(client.cells["send_delay_p99_ns"]), ref(found.cells["rate_per_s"])
                yield Flag("late_sends", sentence("flag_late_sends", delay=delay, rate=rate))
                continue
            word = f"limit_{reason}"
            said = sentence("flag_client_limit", reason="@" + word if word in LOAD_WORDS else reason or "–")
            yield Flag("client_limit", said, part=f"~{reason}")


def _prompts(book: Book, found: Row) -> Iterator[Flag]:
    prompts = book.row("load_prompts", found.labels["configuration_key"])
    if prompts is not None and found.labels["is_judged"] == "yes":
        for name, column in (("differ", "different_documents"), ("unknown", "unknown_documents")):
            if book.whole(prompts, column):
                unlike, documents = ref(prompts.cells[column]), ref(prompts.cells["document_count"])
                said = sentence(f"flag_prompts_{name}", unlike=unlike, documents=documents)
                yield Flag(f"prompts_{name}", said)
        if book.whole(prompts, "different_documents") and book.whole(prompts, "nonce_documents"):
            nonced, documents = ref(prompts.cells["nonce_documents"]), ref(prompts.cells["document_count"])
            yield Flag("prompts_nonce", sentence("flag_prompts_nonce", nonced=nonced, documents=documents))
    checks = book.row("load_checks", found.key)
    if checks is not None and book.whole(checks, "unlike_prompts"):
        digest = checks.labels["local_tokenizer"]
        yield Flag(
            "prompt_count",
            sentence(
                "flag_prompt_count", server=checks.labels["server"], tokenizer=f" ({digest})" if digest else "",
                unlike=ref(checks.cells["unlike_prompts"]), told=ref(checks.cells["told_prompts"]),
                gap=ref(checks.cells["prompt_gap_tokens"]),
            ),
        )  # fmt: skip


def _counts(book: Book, found: Row) -> Iterator[Flag]:
    estimated, tokens = book.figure(found, "estimated_percent"), book.figure(found, "output_tokens")
    share = number(estimated) or 0.0
    if share >= 100:
        yield Flag("estimated", sentence("flag_estimated", estimated=ref(found.cells["estimated_percent"])))
    elif share > 0:
        yield Flag("two_counts", sentence("flag_two_counts", estimated=ref(found.cells["estimated_percent"])))
    elif tokens is not None and tokens.value is None and book.whole(found, "completed_requests"):
        yield Flag("no_count", sentence("flag_no_count"))
    if (number(book.figure(found, "tokens_per_chunk")) or 0.0) > MOST_TOKENS_PER_CHUNK:
        yield Flag("chunks", sentence("flag_chunks", tokens=ref(found.cells["tokens_per_chunk"])))


def _decode(book: Book, found: Row) -> Iterator[Flag]:
    """At one request at a time the mean gap and the output rate while decoding must say the same."""
    checks = book.row("load_checks", found.key)
    factor = number(book.figure(checks, "gap_factor"))
    if checks is None or factor is None or checks.labels["is_single"] != "yes":
        return
    if not 1 / MOST_DECODE_FACTOR <= factor <= MOST_DECODE_FACTOR:
        yield Flag(
            "decode_differs",
            sentence(
                "flag_decode_differs", gap=ref(checks.cells["gap_time_s"]), token=ref(checks.cells["token_time_s"]),
                factor=ref(checks.cells["gap_factor"]), speculative=checks.labels["speculative"],
            ),
        )  # fmt: skip


def _outcomes(book: Book, found: Row) -> Iterator[Flag]:
    if book.whole(found, "empty_requests"):
        yield Flag("empty", sentence("flag_empty", empty=ref(found.cells["empty_requests"])))
    if book.whole(found, "cut_thinking_requests"):
        yield Flag("cut_thinking", sentence("flag_cut_thinking", cut=ref(found.cells["cut_thinking_requests"])))


def _window(book: Book, found: Row) -> Iterator[Flag]:
    """Say why times are those of the whole run, where they are."""
    if found.labels["is_judged"] != "yes":
        return
    times = [r for r in book.rows_of("load_latency", found.labels["configuration_key"]) if r.labels["why"]]
    why = times[0].labels["why"] if times else ""
    if why == "never_steady":
        yield Flag("never_steady", sentence("flag_never_steady"))
    elif why == "too_few_steady":
        needed = book.given("load_needs/p50/needed", MINIMUM_N[50], "requests", "assumed")
        said = sentence("flag_too_few_steady", steady=ref(found.cells["steady_count"]), needed=ref(needed))
        yield Flag("too_few_steady", said)


def _drift(book: Book) -> Iterator[Sentence]:
    for found in book.rows("load_drift"):
        if (number(book.figure(found, "drift_percent")) or 0.0) > MOST_DRIFT_PERCENT:
            yield sentence("notice_drift", label=found.labels["label"], drift=ref(found.cells["drift_percent"]))


def _clock_steps(store: Store) -> Iterator[Sentence]:
    """Hold the wall clock of a pass's first and last line against its duration, which another clock measured."""
    found = store.con.execute(
        "select distinct begun.run_id from stg_pass_begin as begun inner join stg_pass_end as ended "
        "using (run_id, pass_id) where abs(date_diff('millisecond', begun.began_at::timestamp, "
        "ended.written_at::timestamp) - ended.pass_ns / 1e6) > 1000 * ? order by begun.run_id",
        [CLOCK_STEP_S],
    ).fetchall()
    for (run_id,) in found:
        yield sentence("notice_clock_step", run=run_id[:8])
