"""Tells the database which metric of which kind of server means what, for the SQL of the engine's side."""

from __future__ import annotations

import duckdb

from collector.contract.engine_metrics import record_key
from collector.contract.server_kinds import KINDS


def create_metric_names(con: duckdb.DuckDBPyConnection) -> None:
    """Create the table that engine_windows.sql takes its names from: one row per kind of server and capability."""
    con.execute("""
        create or replace table engine_metric_names (
            server_kind varchar, capability varchar, metric_type varchar, unit varchar, main_key varchar,
            count_key varchar, plus_key varchar, minus_key varchar, minus_count_key varchar
        )""")
    for kind, facts in KINDS.items():
        for capability, metric in facts.metrics.items():
            is_histogram = metric.type == "histogram"
            names = [
                record_key(metric.name + ("_sum" if is_histogram else ""), metric.labels),
                record_key(metric.name + "_count", metric.labels) if is_histogram else None,
                record_key(metric.plus, {}) if metric.plus else None,
                record_key(metric.minus + "_sum", {}) if metric.minus else None,
                record_key(metric.minus + "_count", {}) if metric.minus else None,
            ]
            con.execute(
                "insert into engine_metric_names values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [kind, capability, metric.type, metric.unit, *names],
            )
