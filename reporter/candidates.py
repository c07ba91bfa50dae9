"""Candidates of the campaign that fit no configuration of the records, or more than one: each with its line."""

from __future__ import annotations

from collections.abc import Sequence

from collector.contract.campaign import Candidate
from collector.contract.campaign_file import LoadedCampaign
from collector.contract.errors import Finding, Refused

from .configurations import Configuration
from .dossier import Dossier
from .selection import fitting


def refuse_ambiguous(loaded: LoadedCampaign, measured: Sequence[Configuration]) -> None:
    """Raise Refused where a candidate fits several configurations: none of them is taken silently."""
    findings = []
    for index, candidate in enumerate(loaded.campaign.candidates):
        keys = [configuration.key for configuration in fitting(candidate, measured)]
        if len(keys) > 1:
            message = f"candidate {_named(candidate)} fits {len(keys)} configurations: {', '.join(keys)}"
            step = f'add configuration = "{keys[0]}", or another of these keys'
            findings.append(_finding(loaded, index, "ambiguous-candidate", message, step))
    if findings:
        raise Refused(findings)


def unmeasured(dossier: Dossier, loaded: LoadedCampaign) -> Finding | None:
    """Return, in one finding, the candidates that no record belongs to, and what was measured instead."""
    rows = dossier.tables["candidates"].rows
    known = [f'{r.labels["variant"]} on "{r.labels["device"]}"' for r in rows if "configuration_key" in r.labels]
    absent = {row.key for row in rows if row.labels["status"] == "not_measured"}
    listed = ", ".join(dict.fromkeys(sorted(known))) or "nothing"
    step = "write variant, device, batch and concurrency as recorded, or measure it; until then it cannot win"
    missed = [
        index for index, candidate in enumerate(loaded.campaign.candidates) if f"candidate~{candidate.id}" in absent
    ]
    if not missed:
        return None
    names = ", ".join(_named(loaded.campaign.candidates[index]) for index in missed)
    who = f"candidate {names} was" if len(missed) == 1 else f"{len(missed)} candidates were"
    more = "" if len(missed) == 1 else f": {names}"
    return _finding(loaded, missed[0], "not-measured", f"{who} not measured{more}; measured: {listed}", step)


def _named(candidate: Candidate) -> str:
    load = f"batch {candidate.batch}, concurrency {candidate.concurrency}"
    return f'"{candidate.id}" ({candidate.variant} on "{candidate.device}", {load})'


def _finding(loaded: LoadedCampaign, index: int, rule: str, message: str, next_step: str) -> Finding:
    return Finding(loaded.path, loaded.line_of(f"candidate[{index}]"), rule, message, next_step)
