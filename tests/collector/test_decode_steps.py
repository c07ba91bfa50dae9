"""Live rows per decode step, as the answers of a pass give them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.decode_steps import DecodeSteps, row_steps
from collector.engines.base import Answer, EncodedPrompt

PROMPT = EncodedPrompt(document_id="d", rendered="", token_ids=[1], start_token_count=0)


def answer(tokens: int | None, *, number: int = 0, gap_ns: int = 10) -> Answer:
    return Answer(
        prompt=PROMPT, batch_number=number, intended_ns=0, token_count_source="token_ids", finish_reason="end_token",
        request_outcome="failed" if tokens is None else "completed", output_tokens=tokens,
        gaps_ns=[gap_ns] * ((tokens or 1) - 1),
    )  # fmt: skip


def steps_of(answers: list[Answer], *, batch: int) -> DecodeSteps:
    steps = DecodeSteps(batch=batch)
    for each in answers:
        steps.take(each)
    return steps


def test_each_step_counts_the_rows_that_have_a_token_in_it() -> None:
    """Two batches: rows of 4, 2, 2 and 0 tokens, then a single row of 3."""
    answers = [answer(4), answer(2), answer(2), answer(0), answer(3, number=1)]
    assert steps_of(answers, batch=4).live_rows() == {"1": 5, "3": 2}


def test_requests_one_at_a_time_are_one_row_each_whatever_number_they_carry() -> None:
    assert steps_of([answer(4), answer(None), answer(2)], batch=1).live_rows() == {"1": 6}
    assert steps_of([], batch=1).live_rows() == {}


def test_a_request_without_a_known_number_of_tokens_is_alive_in_no_step() -> None:
    assert steps_of([answer(None), answer(3)], batch=2).live_rows() == {"1": 3}


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=6), max_size=6))
def test_live_rows_sum_to_the_tokens_and_never_exceed_the_batch(batches: list[list[int]]) -> None:
    answers = [answer(tokens, number=number) for number, rows in enumerate(batches) for tokens in rows]
    live_rows = steps_of(answers, batch=6).live_rows()
    assert row_steps(live_rows) == sum(map(sum, batches))
    assert sum(live_rows.values()) == sum(max(rows) for rows in batches)
    assert all(1 <= int(rows) <= 6 for rows in live_rows)


def test_a_batch_is_one_sample_of_speed_by_its_longest_row() -> None:
    """Rows of one batch share their steps: counting each would let one batch speak many times."""
    answers = [answer(3, gap_ns=5), answer(9, gap_ns=7), answer(1), answer(4, number=1, gap_ns=2)]
    assert steps_of(answers, batch=3).gap_medians_ns() == [7, 2]
    assert steps_of(answers, batch=1).gap_medians_ns() == [5, 7, 2]
