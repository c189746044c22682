"""The tools of the agent whose run is replayed, from the workspace.

The table `tools` holds the tools of all logs together, and one agent's log
may lie in many files. Sources that share a tool with the run's own source
count as the same agent's: the run is offered what was called in any of them.
(What the run itself called would give the answer away.) Tools that were
logged or given but never called belong to no source; they are offered where
all sources are of one agent.
"""

from __future__ import annotations

import json

from poc.trajectory import ToolSchema
from poc.workspace import Workspace


def tools_of_source(workspace: Workspace, source_id: str) -> list[ToolSchema]:
    """Tools by name, with their schemas (logged, given or inferred) and effect classes."""
    rows = workspace.rows(
        """
        WITH used AS (
            SELECT DISTINCT r.source_id, s.tool FROM steps s JOIN runs r USING (run_id) WHERE s.caller = 'agent'
        ),
        kin AS (
            SELECT DISTINCT u.source_id FROM used u
            WHERE u.tool IN (SELECT tool FROM used WHERE source_id = $source)
        )
        SELECT t.* FROM tools t
        WHERE t.tool IN (SELECT u.tool FROM used u JOIN kin USING (source_id))
           OR (t.origin != 'inferred' AND t.tool NOT IN (SELECT tool FROM steps)
               AND NOT EXISTS (SELECT 1 FROM used WHERE source_id NOT IN (SELECT source_id FROM kin)))
        ORDER BY t.tool
        """,
        {"source": source_id},
    )
    return [
        ToolSchema(
            name=row["tool"],
            description=row["description"],
            parameters=json.loads(row["parameters"]) if row["parameters"] else None,
            origin=row["origin"],
            effect=row["effect"],
            effect_is_guess=row["effect_is_guess"],
        )
        for row in rows
    ]
