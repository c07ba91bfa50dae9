"""What a recorded run holds, sorted for drawing from: documents, answers by batch size, judgements, set-ups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from collector.contract import chain
from collector.contract import protocol as p
from collector.contract import records as r
from collector.contract.texts import is_run_file


class RecordedPass(NamedTuple):
    """The records of one completed pass that are no requests and no judgements."""

    begin: r.PassBegin
    end: r.PassEnd
    variants: list[r.Variant]
    groups: list[r.TensorGroup]
    telemetry: list[r.Telemetry]
    warnings: list[r.Warning]


class Pool(NamedTuple):
    """A recorded run, sorted.

    answers: batch size -> document -> its completed requests of the measure phase. scores: outcome -> judgements.
    line_bytes: kind -> length of each of its lines as they are written today, newline included: a field that the
    contract got after the recording stands in it with its default.
    """

    lock: p.Lock
    environment: r.Environment
    engine: r.Engine
    documents: list[r.Document]
    answers: dict[int, dict[str, list[r.Request]]]
    scores: dict[str, list[r.Score]]
    passes: dict[str, RecordedPass]
    line_bytes: dict[str, list[int]]


def read_pool(paths: Sequence[Path]) -> Pool:
    """Return what the sealed runs of one protocol hold together. Raises ValueError where a line is not a record."""
    found: dict[type, list[r.Record]] = defaultdict(list)
    line_bytes: dict[str, list[int]] = defaultdict(list)
    for path in paths:
        for line in chain.scan(path):
            if line.record is None:
                raise ValueError(f"{path}:{line.line_number} is no record: {line.problems}")
            found[type(line.record)].append(line.record)
            line_bytes[str(type(line.record).__struct_config__.tag)].append(len(r.encode_record(line.record)) + 1)

    def of(kind: type[r.Record]) -> list:  # type: ignore[type-arg]
        return found[kind]

    header: r.Header = of(r.Header)[0]
    begun = {one.pass_id: one for one in of(r.PassBegin)}
    answers: dict[int, dict[str, list[r.Request]]] = defaultdict(lambda: defaultdict(list))
    for request in of(r.Request):
        if request.phase == "measure" and request.request_outcome == "completed" and request.first_token_ns is not None:
            answers[begun[request.pass_id].batch][request.document_id].append(request)
    scores: dict[str, list[r.Score]] = defaultdict(list)
    for score in of(r.Score):
        scores[score.score_outcome].append(score)
    asked = {document for requests in answers.values() for document in requests}
    documents = {one.document_id: one for one in of(r.Document) if one.document_id in asked}
    passes = {}
    for end in of(r.PassEnd):
        begin = begun[end.pass_id]
        if end.pass_outcome == "completed" and begin.batch == 1:
            mine = {kind: [one for one in of(kind) if one.pass_id == end.pass_id] for kind in _SIDE}
            passes.setdefault(begin.variant_name, RecordedPass(begin, end, *(mine[kind] for kind in _SIDE)))
    lock = msgspec.json.decode(header.protocol_json, type=p.Lock)
    return Pool(
        lock, of(r.Environment)[0], of(r.Engine)[0], list(documents.values()), answers, scores, passes, line_bytes
    )


_SIDE = (r.Variant, r.TensorGroup, r.Telemetry, r.Warning)


def run_files(folder: Path) -> list[Path]:
    """Return the run files of a folder by name, texts and steps left out."""
    return sorted(path for path in folder.glob("*.jsonl") if is_run_file(path))
