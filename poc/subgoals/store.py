"""Subgoal sets in the workspace: stored by the hash of their content, one active a category.

Knows nothing of files or scores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from poc.errors import InputError, WorkspaceError, did_you_mean
from poc.subgoals.spec import SubgoalSet
from poc.workspace import Workspace


def store_sets(workspace: Workspace, sets: Sequence[SubgoalSet]) -> None:
    """Store sets and make each the active one of its category; other categories stay as they are.

    Their order is kept: where a run fits several sets, the first claims it.
    Older versions stay in the workspace, since experiments refer to them.
    Raises `InputError` when there is none, or two for one category.
    """
    if not sets:
        raise InputError("There is no subgoal set to store.", todo="Write one, or load a folder that holds some.")
    seen: set[str] = set()
    for each in sets:
        if each.category in seen:
            raise InputError(
                f"The category '{each.category}' has two sets.", todo="Merge them, or rename one category."
            )
        seen.add(each.category)
    now = datetime.now(UTC)
    with workspace.write() as db:
        for place, each in enumerate(sets):
            db.execute("UPDATE subgoal_sets SET active = FALSE WHERE category = ?", [each.category])
            # stored_at also keeps the order of the sets.
            db.execute(
                """
                INSERT INTO subgoal_sets BY NAME
                SELECT ? AS set_hash, ? AS category, ? AS spec, ? AS source_text, TRUE AS active, ? AS stored_at
                ON CONFLICT (set_hash) DO UPDATE SET
                    active = TRUE, stored_at = excluded.stored_at,
                    source_text = coalesce(excluded.source_text, subgoal_sets.source_text)
                """,
                [each.hash, each.category, each.canonical, each.source_text, now + timedelta(microseconds=place)],
            )


def retire_set(workspace: Workspace, category: str) -> None:
    """Take the set of a category out of use; its versions stay stored. Raises `InputError` when there is none."""
    with workspace.write() as db:
        row = db.execute("UPDATE subgoal_sets SET active = FALSE WHERE active AND category = ?", [category]).fetchone()
        if not row or not row[0]:
            known = [name for (name,) in db.execute("SELECT category FROM subgoal_sets WHERE active").fetchall()]
            raise InputError(f"No subgoal set is active for '{category}'.{did_you_mean(category, known)}")


def active_sets(workspace: Workspace) -> list[SubgoalSet]:
    """The sets in use, in the order in which they were stored; empty when there are none."""
    rows = workspace.rows("SELECT * FROM subgoal_sets WHERE active ORDER BY stored_at, category")
    return [_read(row, workspace) for row in rows]


def set_by_hash(workspace: Workspace, set_hash: str) -> SubgoalSet:
    """A stored set, active or not. Raises `InputError` when the workspace has no such set."""
    rows = workspace.rows("SELECT * FROM subgoal_sets WHERE set_hash = ?", [set_hash])
    if not rows:
        raise InputError(
            f"The workspace has no subgoal set {set_hash[:12]}.",
            where=str(workspace.path),
            todo="Load the sets that belong to this workspace.",
        )
    return _read(rows[0], workspace)


def _read(row: dict[str, Any], workspace: Workspace) -> SubgoalSet:
    try:
        found = SubgoalSet.model_validate(json.loads(row["spec"]))
    except (ValidationError, ValueError) as error:
        raise WorkspaceError(
            f"The stored subgoal set of '{row['category']}' cannot be read.",
            where=f"{workspace.path}, set {row['set_hash'][:12]}",
            todo="Load the set again from its file.",
        ) from error
    found._source_text = row["source_text"]
    return found
