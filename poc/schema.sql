-- The tables of a workspace, version 2. A value that was absent in the log is NULL.
-- Times are TIMESTAMPTZ; zone_in_log says whether the log named a zone (if not, the time is stored as if UTC).
-- No foreign keys: rows arrive in bulk and in any order; tests hold the relations.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);

-- Import ---------------------------------------------------------------------------------------------------

CREATE TABLE sources (
    source_id VARCHAR PRIMARY KEY,          -- of the path and the content
    path VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    format VARCHAR NOT NULL,
    reader_version INTEGER NOT NULL,
    mapping JSON,                           -- column mapping of a table
    imported_at TIMESTAMPTZ NOT NULL,
    read BIGINT NOT NULL,                   -- read = imported + rejected + skipped, in source records
    imported BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    skipped BIGINT NOT NULL
);

CREATE TABLE rejects (
    source_id VARCHAR NOT NULL,
    place VARCHAR NOT NULL,                 -- line, offset or JSON path, counted by us
    reason VARCHAR NOT NULL,
    raw VARCHAR,                            -- bounded excerpt
    records BIGINT NOT NULL                 -- 0: only a part of a run, the run itself was kept
);

CREATE TABLE tasks (
    task_id VARCHAR PRIMARY KEY,            -- of the log's task key and text
    task_key VARCHAR,                       -- the log's own id
    text VARCHAR,
    category VARCHAR,
    scenario VARCHAR,                       -- instructions of a simulated user, where logged
    reference JSON                          -- the log's own reference calls: [{tool, arguments}]
);

CREATE TABLE runs (
    run_id VARCHAR PRIMARY KEY,             -- the same whenever the same run is imported again
    source_id VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    native_id VARCHAR,
    trial VARCHAR,
    task_id VARCHAR,
    category VARCHAR,                       -- from the log or a person; a subgoal set may claim the run by its own rule
    framework VARCHAR,
    model VARCHAR,
    started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ,
    duration_s DOUBLE,
    zone_in_log BOOLEAN,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cached_tokens BIGINT,                   -- part of input_tokens
    reasoning_tokens BIGINT,                -- part of output_tokens
    cost_usd DOUBLE,
    outcome DOUBLE,                         -- 0..1
    outcome_provenance VARCHAR,
    metadata JSON
);

-- Files besides runs.source_id that hold records of the run: parts of a trace may stand in several.
CREATE TABLE run_parts (run_id VARCHAR NOT NULL, source_id VARCHAR NOT NULL, records BIGINT NOT NULL);

CREATE TABLE messages (
    run_id VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    role VARCHAR NOT NULL,
    content VARCHAR,                        -- NULL for a tool message whose text is in steps.result
    name VARCHAR,
    sent_at TIMESTAMPTZ,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cached_tokens BIGINT,
    reasoning_tokens BIGINT,
    cost_usd DOUBLE
);

CREATE TABLE steps (
    run_id VARCHAR NOT NULL,
    step INTEGER NOT NULL,                  -- order in the run, from 0
    turn INTEGER NOT NULL,                  -- model response, from 0
    ordinal INTEGER NOT NULL,               -- place among parallel calls of a turn, from 0
    call_id VARCHAR,
    tool VARCHAR NOT NULL,
    arguments_raw VARCHAR,
    arguments JSON,                         -- NULL when not parsable
    arguments_status VARCHAR NOT NULL,      -- parsed, repaired, unparsed, absent
    result VARCHAR,
    status VARCHAR NOT NULL,                -- ok, error, no_result
    status_evidence VARCHAR NOT NULL,       -- flag, exit_code, error_field, text_rule, result, none
    started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ,
    duration_s DOUBLE,
    execution_id VARCHAR,
    caller VARCHAR NOT NULL,                -- agent, user, subagent
    message_seq INTEGER,
    result_seq INTEGER
);

CREATE TABLE tools (
    tool VARCHAR PRIMARY KEY,
    description VARCHAR,
    parameters JSON,
    origin VARCHAR NOT NULL,                -- logged, given, inferred
    effect VARCHAR,                         -- read, write, irreversible
    effect_is_guess BOOLEAN NOT NULL
);

-- Outcomes that people or a joined file supplied; they win over the log's own.
CREATE TABLE labels (
    run_id VARCHAR PRIMARY KEY,
    outcome DOUBLE NOT NULL,
    provenance VARCHAR NOT NULL,            -- joined:<file>, person:<name>
    labelled_at TIMESTAMPTZ NOT NULL
);

-- What every later stage reads: a label, else the log.
CREATE VIEW outcomes AS
SELECT r.run_id, r.task_id, coalesce(l.outcome, r.outcome) AS outcome,
       CASE WHEN l.run_id IS NOT NULL THEN l.provenance ELSE r.outcome_provenance END AS provenance
FROM runs r LEFT JOIN labels l USING (run_id);

-- Judging the log ------------------------------------------------------------------------------------------

CREATE TABLE findings (
    check_id VARCHAR PRIMARY KEY,           -- a check (tool, arguments, ...) or an oddity (backwards, ...)
    unit VARCHAR NOT NULL,                  -- steps, runs or results
    present BIGINT NOT NULL,                -- of total: have what is asked, or are free of what is odd
    total BIGINT NOT NULL,
    level VARCHAR NOT NULL,                 -- ok, note, gap, missing
    assessed_at TIMESTAMPTZ NOT NULL
);

-- Subgoals and progress ------------------------------------------------------------------------------------

CREATE TABLE subgoal_sets (
    set_hash VARCHAR PRIMARY KEY,           -- of the content
    category VARCHAR NOT NULL,
    spec JSON NOT NULL,
    source_text VARCHAR,                    -- the YAML as written
    active BOOLEAN NOT NULL,                -- the one in use for its category
    stored_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE assignments (run_id VARCHAR PRIMARY KEY, set_hash VARCHAR NOT NULL);  -- which set claimed which run

CREATE TABLE achievements (
    run_id VARCHAR NOT NULL,
    set_hash VARCHAR NOT NULL,
    subgoal VARCHAR NOT NULL,
    step INTEGER NOT NULL,                  -- at which it was achieved (or undone)
    event VARCHAR NOT NULL                  -- achieved, undone
);

CREATE TABLE progress (
    run_id VARCHAR NOT NULL,
    set_hash VARCHAR NOT NULL,
    step INTEGER NOT NULL,
    current DOUBLE NOT NULL,                -- 0..1, falls when a subgoal is undone
    high_water DOUBLE NOT NULL,             -- 0..1, never falls
    gain DOUBLE NOT NULL                    -- change of current made by this step
);

-- Replay ---------------------------------------------------------------------------------------------------

CREATE TABLE experiments (
    experiment_id VARCHAR PRIMARY KEY,
    name VARCHAR,
    plan JSON NOT NULL,                     -- frozen before the first call
    plan_hash VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,                  -- closed_loop, next_step
    created_at TIMESTAMPTZ NOT NULL,
    estimate JSON,
    status VARCHAR NOT NULL,                -- planned, running, stopped, finished
    simulated BOOLEAN,                      -- whether the server declared itself simulated; NULL before the first call
    merged_at TIMESTAMPTZ
);

CREATE TABLE trials (
    trial_id VARCHAR PRIMARY KEY,
    experiment_id VARCHAR NOT NULL,
    task_id VARCHAR NOT NULL,
    category VARCHAR,
    arm VARCHAR NOT NULL,
    repeat INTEGER NOT NULL,
    cut_run_id VARCHAR,                     -- next_step: the logged run whose history was shown
    cut_turn INTEGER,                       -- next_step: the turn to be predicted
    position INTEGER NOT NULL,              -- place in the randomised order
    attempt INTEGER NOT NULL,               -- restarts after a lost environment are counted
    status VARCHAR NOT NULL,                -- finished, failed
    stop_reason VARCHAR,                    -- answered, step_limit, turn_limit, timeout, refused, model_error,
                                            -- environment_error, judged
    error VARCHAR,
    success DOUBLE,                         -- 0..1; NULL when nothing could judge
    success_provenance VARCHAR,             -- environment, next_step_quality, subgoals
    final_progress DOUBLE,
    turns INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    errors INTEGER NOT NULL,                -- tool results with status error
    repeated_steps INTEGER NOT NULL,        -- same tool and arguments as an earlier successful step
    repeated_irreversible INTEGER NOT NULL,
    input_tokens BIGINT,                    -- NULL when any request lacked usage
    output_tokens BIGINT,
    cached_tokens BIGINT,
    reasoning_tokens BIGINT,
    context_tokens BIGINT NOT NULL,         -- tiktoken estimate of the added text over all requests
    cost_usd DOUBLE,                        -- NULL when the price is unknown
    model_latency_s DOUBLE,                 -- sum over requests, without backoff
    first_token_s DOUBLE,                   -- mean over requests
    tool_latency_s DOUBLE,
    started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ
);

CREATE TABLE requests (
    request_id VARCHAR PRIMARY KEY,
    trial_id VARCHAR NOT NULL,
    turn INTEGER NOT NULL,
    model VARCHAR,                          -- as the server reported it
    http_status INTEGER,
    retries INTEGER NOT NULL,
    backoff_s DOUBLE NOT NULL,
    first_token_s DOUBLE,
    total_s DOUBLE,                         -- of the successful attempt, without backoff
    input_tokens BIGINT,
    output_tokens BIGINT,
    cached_tokens BIGINT,
    reasoning_tokens BIGINT,
    context_tokens BIGINT NOT NULL,         -- estimate
    cost_usd DOUBLE,
    finish_reason VARCHAR,
    error VARCHAR,
    sent_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE replay_steps (
    trial_id VARCHAR NOT NULL,
    step INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    tool VARCHAR NOT NULL,
    arguments JSON,
    result VARCHAR,
    status VARCHAR NOT NULL,
    duration_s DOUBLE,
    progress DOUBLE,                        -- current, after the step
    context VARCHAR                         -- what the arm had added to the request that made the call
);

CREATE TABLE judgements (
    trial_id VARCHAR NOT NULL,
    judge VARCHAR NOT NULL,                 -- advances, repeats, stopped_early, matches_logged
    value BOOLEAN,                          -- NULL when it does not apply
    reason VARCHAR
);

CREATE TABLE verdicts (
    experiment_id VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,               -- GO, NO-GO, INCONCLUSIVE
    simulated BOOLEAN NOT NULL,
    reasons JSON NOT NULL,                  -- [{key, values}] for the reader's language
    numbers JSON NOT NULL,                  -- every figure of the comparison
    verdict_hash VARCHAR NOT NULL,
    decided_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE criteria (
    experiment_id VARCHAR NOT NULL,
    verdict_hash VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    criterion VARCHAR NOT NULL,             -- success, latency, tokens, repeated_irreversible, ...
    decisive BOOLEAN NOT NULL,
    value DOUBLE, low DOUBLE, high DOUBLE,
    threshold DOUBLE,
    status VARCHAR NOT NULL,                -- met, broken, open, off
    reason JSON NOT NULL                    -- {key, values}
);
