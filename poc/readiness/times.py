"""When runs happened, for timelines. A run that names no times of its own has those of its steps; none are invented."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd

from poc.workspace import Workspace

_RUN_TIMES = """
SELECT r.run_id, r.native_id, coalesce(r.started_at, p.first) AS started_at,
       coalesce(r.ended_at, greatest(p.last, coalesce(r.started_at, p.first))) AS ended_at,
       coalesce(p.steps, 0) AS steps, o.outcome, r.zone_in_log
FROM runs r LEFT JOIN outcomes o USING (run_id)
LEFT JOIN (
    SELECT run_id, count(*) AS steps, min(started_at) AS first, max(greatest(started_at, ended_at)) AS last
    FROM steps GROUP BY run_id
) p USING (run_id)
"""

_WIDTHS = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400)
)
_MOST_BARS = 60


def run_times(workspace: Workspace, *, limit: int = 200, offset: int = 0) -> pd.DataFrame:
    """One row a run whose start is known, in the order of time: run_id, native_id, started_at, ended_at (the start
    where no end is known), steps, outcome (0..1), zone_in_log, total (of all such runs).
    """
    return workspace.frame(
        f"SELECT *, count(*) OVER () AS total FROM ({_RUN_TIMES}) WHERE started_at IS NOT NULL"
        " ORDER BY started_at, run_id LIMIT ? OFFSET ?",
        [limit, offset],
    )


def runs_over_time(workspace: Workspace) -> pd.DataFrame:
    """One row a stretch of time and kind of outcome: start, width_s (of the stretch, in seconds), outcome (failed,
    succeeded, unknown), runs that started in it. At most some 60 stretches, of a width that people count in.
    """
    span = workspace.rows(f"SELECT min(started_at) AS first, max(started_at) AS last FROM ({_RUN_TIMES})")[0]
    length = timedelta() if span["first"] is None else span["last"] - span["first"]
    width = next((width for width in _WIDTHS if length <= width * _MOST_BARS), _WIDTHS[-1])
    return workspace.frame(
        f"""
        SELECT time_bucket($width, started_at) AS start, epoch($width) AS width_s,
               CASE WHEN outcome IS NULL THEN 'unknown' WHEN outcome >= 0.5 THEN 'succeeded' ELSE 'failed' END
               AS outcome, count(*) AS runs
        FROM ({_RUN_TIMES}) WHERE started_at IS NOT NULL GROUP BY ALL ORDER BY start, outcome
        """,
        {"width": width},
    )
