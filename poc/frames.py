"""What a workspace holds, as pandas frames with documented columns.

Notebooks, pages and the report read through here, so that all of them show
the same facts. Every function is one query; nothing is computed twice
elsewhere. Absent values are NULL (shown as NaN, NaT or None by pandas).
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from poc.errors import InputError, did_you_mean
from poc.workspace import Workspace


def counts(workspace: Workspace) -> dict[str, int]:
    """How far a workspace is: number of sources, runs, steps, tasks, outcomes, rejects, sets, scored runs, ...."""
    rows = workspace.rows(
        """
        SELECT (SELECT count(*) FROM sources) AS sources,
               (SELECT count(*) FROM runs) AS runs,
               (SELECT count(*) FROM steps) AS steps,
               (SELECT count(DISTINCT task_id) FROM runs) AS tasks,
               (SELECT count(*) FROM outcomes WHERE outcome IS NOT NULL) AS outcomes,
               (SELECT count(*) FROM rejects) AS rejects,
               (SELECT count(*) FROM subgoal_sets WHERE active) AS sets,
               (SELECT count(*) FROM assignments) AS scored_runs,
               (SELECT count(*) FROM experiments) AS experiments,
               (SELECT count(*) FROM trials) AS trials,
               (SELECT count(*) FROM verdicts) AS verdicts
        """
    )
    return {name: int(value) for name, value in rows[0].items()}


def sources(workspace: Workspace) -> pd.DataFrame:
    """One row a source: path, format, size_bytes, imported_at, read, imported, rejected, skipped (source records)."""
    return workspace.frame(
        """
        SELECT path, format, size_bytes, imported_at, read, imported, rejected, skipped, sha256, source_id
        FROM sources ORDER BY imported_at DESC, path
        """
    )


_REJECTS = """
    FROM rejects r LEFT JOIN sources s USING (source_id)
    WHERE ($source IS NULL OR contains(lower(s.path), lower($source)))
      AND ($reason IS NULL OR contains(lower(r.reason), lower($reason)))
"""


def rejects(
    workspace: Workspace, *, source: str | None = None, reason: str | None = None, limit: int = 500, offset: int = 0
) -> pd.DataFrame:
    """One row a reject: path, place (as we counted it), reason, raw (excerpt), records (0: part of a kept run).

    source, reason: only those whose path or reason contains this text, in any case of letters. In the order of the
    files.
    """
    return workspace.frame(
        f"SELECT s.path, r.place, r.reason, r.raw, r.records {_REJECTS} ORDER BY s.path,"
        " TRY_CAST(regexp_extract(r.place, '[0-9]+') AS BIGINT), r.rowid LIMIT $limit OFFSET $offset",
        {"source": source, "reason": reason, "limit": limit, "offset": offset},
    )


def reject_count(workspace: Workspace, *, source: str | None = None, reason: str | None = None) -> int:
    """How many rejects fit, see `rejects`."""
    return workspace.value(f"SELECT count(*) {_REJECTS}", {"source": source, "reason": reason})


def reject_kinds(workspace: Workspace) -> pd.DataFrame:
    """One row a file and kind of reason (what stands before its first colon): path, kind, rejects, records. The
    commonest first."""
    return workspace.frame(
        """
        SELECT s.path, split_part(r.reason, ':', 1) AS kind, count(*) AS rejects, sum(r.records)::BIGINT AS records
        FROM rejects r LEFT JOIN sources s USING (source_id) GROUP BY ALL ORDER BY rejects DESC, s.path, kind
        """
    )


def runs(workspace: Workspace, *, category: str | None = None, limit: int = 500, offset: int = 0) -> pd.DataFrame:
    """One row a run: run_id, native_id, task_key, category (of its set, else of the log), model, steps, errors,
    outcome (0..1), provenance, progress (final, high-water, 0..1), started_at, duration_s, tokens.
    """
    return workspace.frame(
        """
        WITH per_run AS (
            SELECT run_id, count(*) AS steps, count_if(status = 'error') AS errors FROM steps GROUP BY run_id
        ), final AS (SELECT run_id, max(high_water) AS progress FROM progress GROUP BY run_id)
        SELECT r.run_id, r.native_id, t.task_key, coalesce(g.category, r.category) AS category, r.model,
               coalesce(p.steps, 0) AS steps, coalesce(p.errors, 0) AS errors, o.outcome, o.provenance,
               f.progress, r.started_at, r.duration_s, r.input_tokens + r.output_tokens AS tokens
        FROM runs r
        LEFT JOIN tasks t USING (task_id)
        LEFT JOIN per_run p USING (run_id)
        LEFT JOIN outcomes o USING (run_id)
        LEFT JOIN final f USING (run_id)
        LEFT JOIN assignments a USING (run_id)
        LEFT JOIN subgoal_sets g ON g.set_hash = a.set_hash
        WHERE $category IS NULL OR coalesce(g.category, r.category) = $category
        ORDER BY r.source_id, r.place LIMIT $limit OFFSET $offset
        """,
        {"category": category, "limit": limit, "offset": offset},
    )


def run_counts(workspace: Workspace) -> pd.DataFrame:
    """One row a category as `runs` shows it: category (NULL: none), runs. For filters and paging."""
    return workspace.frame(
        """
        SELECT coalesce(g.category, r.category) AS category, count(*) AS runs
        FROM runs r LEFT JOIN assignments a USING (run_id) LEFT JOIN subgoal_sets g ON g.set_hash = a.set_hash
        GROUP BY ALL ORDER BY category
        """
    )


def run(workspace: Workspace, run_id: str) -> dict[str, Any]:
    """One run's own facts: run_id, native_id, task_key, task_text, category, model, framework, outcome (0..1),
    provenance, tokens, started_at, duration_s, path, place.
    """
    _known_run(workspace, run_id)
    return workspace.rows(
        """
        SELECT r.run_id, r.native_id, t.task_key, t.text AS task_text, coalesce(g.category, r.category) AS category,
               r.model, r.framework, o.outcome, o.provenance, r.input_tokens + r.output_tokens AS tokens,
               r.started_at, r.duration_s, s.path, r.place
        FROM runs r
        LEFT JOIN tasks t USING (task_id)
        LEFT JOIN outcomes o USING (run_id)
        LEFT JOIN sources s USING (source_id)
        LEFT JOIN assignments a USING (run_id)
        LEFT JOIN subgoal_sets g ON g.set_hash = a.set_hash
        WHERE r.run_id = ?
        """,
        [run_id],
    )[0]


def steps(workspace: Workspace, run_id: str) -> pd.DataFrame:
    """One row a step of one run, with its progress: step, turn, message_seq (the message that made the call), tool,
    arguments, result, status, status_evidence, started_at, ended_at, duration_s, caller, current, high_water, gain,
    subgoals (events at this step, comma-separated).
    """
    _known_run(workspace, run_id)
    return workspace.frame(
        """
        WITH events AS (
            SELECT step, string_agg(CASE WHEN event = 'undone' THEN '-' ELSE '+' END || subgoal, ', ' ORDER BY subgoal)
                   AS subgoals
            FROM achievements WHERE run_id = $run GROUP BY step
        )
        SELECT s.step, s.turn, s.message_seq, s.tool, coalesce(s.arguments::VARCHAR, s.arguments_raw) AS arguments,
               s.result, s.status, s.status_evidence, s.started_at, s.ended_at, s.duration_s,
               s.caller,
               p.current, p.high_water, p.gain, e.subgoals
        FROM steps s
        LEFT JOIN progress p ON p.run_id = s.run_id AND p.step = s.step
        LEFT JOIN events e ON e.step = s.step
        WHERE s.run_id = $run ORDER BY s.step
        """,
        {"run": run_id},
    )


def messages(workspace: Workspace, run_id: str) -> pd.DataFrame:
    """One row a message of one run: seq, role, content (NULL where a step's result holds it), name, sent_at."""
    _known_run(workspace, run_id)
    return workspace.frame(
        "SELECT seq, role, content, name, sent_at FROM messages WHERE run_id = ? ORDER BY seq", [run_id]
    )


def tools(workspace: Workspace) -> pd.DataFrame:
    """One row a tool that the agent called: tool, effect (read, write, irreversible), effect_is_guess, origin of its
    schema, calls, errors, no_result (calls without any answer), error_share (errors of the calls that were answered,
    0..1), timed (calls whose duration is known), median_duration_s and p95_duration_s (of those).
    """
    return workspace.frame(
        """
        SELECT s.tool, any_value(t.effect) AS effect, any_value(t.effect_is_guess) AS effect_is_guess,
               any_value(t.origin) AS origin, count(*) AS calls, count_if(s.status = 'error') AS errors,
               count_if(s.status = 'no_result') AS no_result,
               avg((s.status = 'error')::INTEGER) FILTER (s.status <> 'no_result') AS error_share,
               count(s.duration_s) AS timed, median(s.duration_s) AS median_duration_s,
               quantile_cont(s.duration_s, 0.95) AS p95_duration_s
        FROM steps s LEFT JOIN tools t USING (tool) WHERE s.caller <> 'user'
        GROUP BY s.tool ORDER BY calls DESC, s.tool
        """
    )


def subgoal_counts(workspace: Workspace) -> pd.DataFrame:
    """One row a subgoal of every active set: category, position, subgoal, title, weight, required, runs (assigned),
    achieved (runs that ever achieved it), median_step (first achievement), success_if_done, success_if_not (0..1).
    """
    return workspace.frame(
        """
        WITH sets AS (SELECT set_hash, category, spec FROM subgoal_sets WHERE active),
        goals AS (
            SELECT set_hash, category, position,
                   spec->>('$.subgoals[' || position || '].id') AS subgoal,
                   spec->>('$.subgoals[' || position || '].title') AS title,
                   (spec->>('$.subgoals[' || position || '].weight'))::DOUBLE AS weight,
                   (spec->>('$.subgoals[' || position || '].required'))::BOOLEAN AS required
            FROM (SELECT *, unnest(range(json_array_length(spec, '$.subgoals')::BIGINT)) AS position FROM sets)
        ),
        firsts AS (
            SELECT run_id, set_hash, subgoal, min(step) AS step FROM achievements
            WHERE event = 'achieved' GROUP BY ALL
        )
        SELECT g.category, g.position, g.subgoal, g.title, g.weight, g.required,
               count(a.run_id) AS runs, count(f.step) AS achieved, median(f.step) AS median_step,
               avg(o.outcome) FILTER (f.step IS NOT NULL) AS success_if_done,
               avg(o.outcome) FILTER (f.step IS NULL) AS success_if_not
        FROM goals g
        LEFT JOIN assignments a USING (set_hash)
        LEFT JOIN firsts f ON f.run_id = a.run_id AND f.set_hash = g.set_hash AND f.subgoal = g.subgoal
        LEFT JOIN outcomes o ON o.run_id = a.run_id
        GROUP BY ALL ORDER BY g.category, g.position
        """
    )


def subgoal_sets(workspace: Workspace) -> pd.DataFrame:
    """One row an active set: category, set_hash, source_text (the YAML as written, or NULL), stored_at."""
    return workspace.frame(
        "SELECT category, set_hash, source_text, stored_at FROM subgoal_sets WHERE active ORDER BY category"
    )


def progress_by_outcome(workspace: Workspace) -> pd.DataFrame:
    """One row a scored run: run_id, category, task_id, progress (final high-water, 0..1), outcome
    (0..1 or NULL), steps.
    """
    return workspace.frame(
        """
        SELECT a.run_id, g.category, o.task_id, coalesce(max(p.high_water), 0) AS progress,
               any_value(o.outcome) AS outcome,
               count(p.step) AS steps
        FROM assignments a JOIN subgoal_sets g USING (set_hash)
        LEFT JOIN progress p ON p.run_id = a.run_id LEFT JOIN outcomes o ON o.run_id = a.run_id
        GROUP BY a.run_id, g.category, o.task_id ORDER BY g.category, a.run_id
        """
    )


def experiments(workspace: Workspace) -> pd.DataFrame:
    """One row an experiment, newest first: experiment_id, name, mode, status, simulated, created_at,
    trials, verdict.
    """
    return workspace.frame(
        """
        SELECT e.experiment_id, e.name, e.mode, e.status, e.simulated, e.created_at,
               (SELECT count(*) FROM trials t WHERE t.experiment_id = e.experiment_id) AS trials,
               (SELECT arg_max(v.verdict, v.decided_at) FROM verdicts v
                WHERE v.experiment_id = e.experiment_id) AS verdict
        FROM experiments e ORDER BY e.created_at DESC
        """
    )


def trials(workspace: Workspace, experiment_id: str) -> pd.DataFrame:
    """One row a trial of one experiment; columns as in the table `trials`, with the task's own key and text."""
    return workspace.frame(
        """
        SELECT t.*, k.task_key, k.text AS task_text FROM trials t LEFT JOIN tasks k USING (task_id)
        WHERE t.experiment_id = ? ORDER BY t.position
        """,
        [experiment_id],
    )


def replay_steps(workspace: Workspace, trial_id: str) -> pd.DataFrame:
    """One row a step of one trial: step, turn, ordinal, tool, arguments, result, status, duration_s, progress,
    context.
    """
    return workspace.frame("SELECT * EXCLUDE (trial_id) FROM replay_steps WHERE trial_id = ? ORDER BY step", [trial_id])


def requests(workspace: Workspace, experiment_id: str) -> pd.DataFrame:
    """One row a model call of one experiment; columns as in the table `requests`, with arm and task_id."""
    return workspace.frame(
        """
        SELECT t.arm, t.task_id, r.* FROM requests r JOIN trials t USING (trial_id)
        WHERE t.experiment_id = ? ORDER BY r.sent_at
        """,
        [experiment_id],
    )


def latest_experiment(workspace: Workspace, experiment_id: str | None = None) -> str:
    """The experiment asked for, or the newest one.

    Raises `InputError` when there is none, or none of this name (with the ones that are there).
    """
    known = [
        row["experiment_id"] for row in workspace.rows("SELECT experiment_id FROM experiments ORDER BY created_at DESC")
    ]
    if not known:
        raise InputError(
            "This workspace holds no experiment yet.", where=str(workspace.path), todo="Plan one: poc replay plan"
        )
    if experiment_id is None:
        return known[0]
    if experiment_id not in known:
        raise InputError(
            f"There is no experiment '{experiment_id}' in this workspace.{did_you_mean(experiment_id, known)}",
            where=str(workspace.path),
        )
    return experiment_id


def _known_run(workspace: Workspace, run_id: str) -> None:
    if workspace.value("SELECT count(*) FROM runs WHERE run_id = ?", [run_id]) == 0:
        raise InputError(
            f"There is no run '{run_id}' in this workspace.",
            where=str(workspace.path),
            todo="Look at the runs on the Data page, or with poc.frames.runs.",
        )
