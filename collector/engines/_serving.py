"""From prompts to answers through a server: what each request carries, how a phase is run, and what it leaves behind.

Everything that costs time is done before a job begins: prompts are rendered, the server's tokenizer is asked, bodies
are written. From then until its last request the load generator has the machine; what it hands over is read here.

Warm-up: the plan's requests, ROUND_REQUESTS at least, are put to the server at the pass's own load, again and again,
until the median time to first token of two successive rounds differs by less than SETTLED, ROUNDS times at most, and
not beyond half of the phase's limit. The first round is not compared: its first request is the cold start, which is a
row like the others.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from collector.client.messages import ClientDone, ClientJob, Exchange, Limits, ScrapeText, Sending
from collector.client.process import LoadGenerator
from collector.clock import Clock
from collector.contract.protocol import portable
from collector.contract.records import AnyRecord, ClientWindow
from collector.contract.records.base import Phase
from collector.contract.records.passes import ScrapeMoment
from collector.scrapes import scrape_record

from ._cold import ColdRequests, with_nonce
from ._context import claimed_context_tokens, refused
from ._exchange import ReadingRules, SentPrompt, answer_of
from ._prompt_counts import PromptCounts
from ._prompting import TemplateEncoder, messages_of
from ._requests import RequestWriter
from ._same_prompt import ServerTokenizer
from ._served_model import answering_model, is_same_model
from ._server_watch import ServerWatch
from ._session import Session
from .base import Answer, EncodedPrompt, EngineSetup, Load, Prompt, Wire

ROUNDS, ROUND_REQUESTS = 6, 2
SETTLED = 0.05
_REFUSED_FIELD = (400, 422)


class Prepared(NamedTuple):
    """One request ready to send: the document's own prompt, what is known of it, and the bytes."""

    prompt: EncodedPrompt
    sent: SentPrompt
    path: str
    body: bytes


class Serving:
    """Answers prompts through one session; one job at a time."""

    def __init__(
        self, setup: EngineSetup, session: Session, generator: LoadGenerator, encoder: TemplateEncoder, clock: Clock
    ) -> None:
        self._setup = setup
        self._session = session
        self._generator = generator
        self._encoder = encoder
        self._clock = clock
        self._writer = RequestWriter(session.choice, setup.generation, model=session.model)
        self._cold = ColdRequests(session.choice)
        self._tokenizer = ServerTokenizer(session.asker.post, session.facts, model=session.model)
        self._prompts: dict[str, Prompt] = {}
        self._server_ids: dict[str, list[int] | None] = {}
        self._records: list[AnyRecord] = []
        self._watch = ServerWatch(session)
        self._has_answered = False
        self.answering: list[str] = []
        """Names of the model in the answers so far, each once, in the order of their first answer."""
        choice, limits = session.choice, setup.limits
        self._limits = Limits(
            connect_s=choice.connect_s, first_token_s=choice.first_token_s, request_s=limits.request_s,
            retries=choice.retries, retry_wait_s=choice.retry_wait_s,
        )  # fmt: skip
        self._rules = ReadingRules(
            reasoning_fields=choice.reasoning_fields, limits=self._limits, stop_texts=setup.generation.stop_after,
            count_tokens=encoder.count_tokens, kind=choice.kind,
        )  # fmt: skip

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return the prompts as rendered here, and ask the server for its own tokens of each, once."""
        encoded = self._encoder.encode(prompts)
        for prompt in prompts:
            self._prompts[prompt.document_id] = prompt
            if self._session.choice.endpoint == "chat" and prompt.document_id not in self._server_ids:
                self._server_ids[prompt.document_id] = self._tokenizer.ids(messages_of(prompt))
        return encoded

    def answers(self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load) -> Iterator[Answer]:
        """Yield one final answer per prompt and the tries before it; in the warm-up as many rounds as it takes.

        Raises EngineFault, after all answers, where the server ended or is gone.
        """
        if phase == "warmup":
            yield from self._warm_up(prompts, load)
        else:
            yield from self._round(prompts, phase, load)

    def take_records(self) -> list[AnyRecord]:
        """Return windows and scrapes since the last call. A scrape's offset is still a stamp of the clock."""
        taken, self._records = self._records, []
        return taken

    def _warm_up(self, prompts: Sequence[EncodedPrompt], load: Load) -> Iterator[Answer]:
        give_up = time.monotonic() + self._setup.limits.warmup_s / 2
        medians: list[float] = []
        asked = [prompts[place % len(prompts)] for place in range(max(ROUND_REQUESTS, len(prompts)))] if prompts else []
        for _ in range(ROUNDS if prompts else 0):
            firsts: list[int] = []
            self._records = [each for each in self._records if not isinstance(each, ClientWindow)]  # one for the phase
            for answer in self._round(asked, "warmup", load):
                if answer.is_final and answer.first_token_ns is not None and answer.sent_ns is not None:
                    firsts.append(answer.first_token_ns - answer.sent_ns)
                yield answer
            self._watch.require_answers("warm-up")
            if not firsts:
                return
            medians.append(statistics.median(firsts))
            if is_settled(medians):
                return
            if time.monotonic() > give_up:
                break
        if medians:
            shown = ", ".join(f"{median / 1e6:.1f}" for median in medians)
            logging.getLogger("warmup").warning(
                "after %d rounds of warm-up the time to first token may still change: medians of %s ms",
                len(medians), shown,
            )  # fmt: skip

    def _round(self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load) -> Iterator[Answer]:
        fitting: list[Prepared] = []
        for one in map(self._prepared, prompts):
            if (too_long := self._too_long(one)) is not None:
                yield too_long
            else:
                fitting.append(one)
        again: list[EncodedPrompt] = []
        counts = PromptCounts()
        for answer in self._job(fitting, phase, load):
            if self._refuses_usage(answer):
                again.append(answer.prompt)
                answer = msgspec.structs.replace(answer, is_final=False)
            elif answer.is_final:
                counts.take(answer)
            self._has_answered |= answer.request_outcome == "completed"
            yield answer
        if again:
            self._writer.has_usage = False
            for answer in self._job([self._prepared(prompt) for prompt in again], phase, load):
                counts.take(answer)
                yield answer
        counts.warn(self._session, self._encoder)

    def _refuses_usage(self, answer: Answer) -> bool:
        """True where the server may have refused the field that asks for counts: then it is asked once without."""
        status = answer.wire.http_status if answer.wire else None
        if status not in _REFUSED_FIELD or not self._writer.has_usage or not answer.is_final or self._has_answered:
            return False
        return answer.request_outcome == "failed"

    def _job(self, prepared: Sequence[Prepared], phase: Phase, load: Load) -> Iterator[Answer]:
        if not prepared:
            return
        job = ClientJob(
            target=self._session.target,
            sendings=[Sending(number=n, path=one.path, body=one.body) for n, one in enumerate(prepared)],
            load=load, limits=self._limits, reasoning_fields=self._session.choice.reasoning_fields,
            scrape_path=self._metrics_path() if phase == "measure" else None,
            scrape_every_s=self._session.choice.scrape_every_s,
        )  # fmt: skip
        due, is_over = dict(enumerate(prepared)), False
        self._scrape("before", phase)
        for message in self._generator.run(job):
            if isinstance(message, Exchange):
                if message.is_final:
                    due.pop(message.number, None)
                answer = self._answer(message, prepared[message.number])
                self._look_at_model(message, answer, phase)
                is_asked_again = self._refuses_usage(answer)  # no failure of the server's
                yield answer
                if self._watch.is_gone(message):
                    break
                if not is_asked_again and self._watch.is_enough(answer, message, self._url):
                    self._generator.stop()  # what it sent by now still comes, each as it ended
            elif isinstance(message, ScrapeText):
                self._keep_scrape("during", message.stamp_ns, message.text)
            elif isinstance(message, ClientDone):
                self._records.append(msgspec.structs.replace(message.window, phase=phase))
                is_over = True
        if due and not is_over:  # nobody is there: what is left would fail one by one, each in its own time
            self._generator.close()
        for one in due.values():
            yield self._unsent(one)
        self._watch.require_there()
        self._scrape("after", phase)

    def _prepared(self, prompt: EncodedPrompt) -> Prepared:
        cold = self._cold.next()
        sent, given = prompt, self._prompts[prompt.document_id]
        if cold.nonce is not None:
            given = with_nonce(given, cold.nonce)
            sent = self._encoder.encode([given])[0]
        body = self._writer.body(
            messages=messages_of(given), text=sent.rendered, token_ids=sent.token_ids, cold=cold.fields
        )
        path = self._session.running.address.path + self._writer.path
        return Prepared(prompt, self._known(prompt, sent), path, body)

    @property
    def _url(self) -> str:
        return self._session.running.base_url + self._writer.path

    def _known(self, prompt: EncodedPrompt, sent: EncodedPrompt) -> SentPrompt:
        """Return how it is known which tokens the model will see; evidence null where only the server's count can tell.

        With a nonce these are not the document's own tokens, and are told as what they are.
        """
        has_nonce = sent is not prompt
        nonce_tokens = len(sent.token_ids) - len(prompt.token_ids) if has_nonce else None
        own = sent.token_ids if has_nonce else None
        if self._writer.takes_token_ids:
            return SentPrompt("token_ids", nonce_tokens, own)
        server_ids = self._server_ids.get(prompt.document_id)
        if server_ids is None:
            return SentPrompt(None, nonce_tokens, own)
        if server_ids == prompt.token_ids:
            return SentPrompt("server_tokenizer", nonce_tokens, own)
        return SentPrompt("differs", nonce_tokens, server_ids)

    def _answer(self, exchange: Exchange, one: Prepared) -> Answer:
        answer = answer_of(exchange, one.prompt, self._rules, one.sent)
        if answer.failure_message is None:
            return answer
        words = self._session.without_secrets(answer.failure_message)
        return msgspec.structs.replace(answer, failure_message=words)

    def _look_at_model(self, exchange: Exchange, answer: Answer, phase: Phase) -> None:
        """Keep the name that an answer gives its model; one that changes while measuring is warned of, once."""
        name = answering_model(exchange) if answer.request_outcome == "completed" else None
        if name is None or name in self.answering:
            return
        if phase == "measure" and self.answering and not is_same_model(self.answering[0], name):
            logging.getLogger("server").warning(
                "the model that answers changed its name from %s to %s", portable(self.answering[0]), portable(name)
            )
        self.answering.append(name)

    def _too_long(self, one: Prepared) -> Answer | None:
        generation = self._setup.generation
        claimed = claimed_context_tokens(self._session.claim.claims)
        limit = generation.context_limit(self._encoder.context_limit_tokens(), claimed)
        theirs = self._server_ids.get(one.prompt.document_id) or one.prompt.token_ids
        return refused(
            one.prompt, generation, limit, tokens=len(theirs) + (one.sent.nonce_tokens or 0), source="none",
            wire=Wire(), intended_ns=self._clock.monotonic_ns(),
        )  # fmt: skip

    def _unsent(self, one: Prepared) -> Answer:
        cause, words = self._watch.unsent()
        return Answer(
            prompt=one.prompt, intended_ns=self._clock.monotonic_ns(), token_count_source="none",
            finish_reason="not_started", request_outcome="failed", failure_cause=cause,
            failure_message=words, wire=Wire(),
        )  # fmt: skip

    def _metrics_path(self) -> str | None:
        path = self._session.metrics_path
        return None if path is None else self._session.running.address.path + path

    def _scrape(self, moment: ScrapeMoment, phase: Phase) -> None:
        if phase == "measure" and self._session.metrics_path is not None:
            text = self._session.asker.text(self._session.metrics_path)
            self._keep_scrape(moment, self._clock.monotonic_ns(), text)

    def _keep_scrape(self, moment: ScrapeMoment, stamp_ns: int, text: str | None) -> None:
        found = scrape_record(moment, text, kind=self._session.choice.kind, offset_ns=stamp_ns)
        if found is not None:
            self._records.append(found)


def is_settled(medians: Sequence[float]) -> bool:
    """Return whether the last two rounds of a warm-up agree, the first of all left out."""
    if len(medians) < 3:
        return False
    before, last = medians[-2:]
    return abs(last - before) < SETTLED * max(before, last)
