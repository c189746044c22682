"""What an Inspect sample says as a whole: what was asked, tokens, outcome, metadata; and its contents as text.

Input tokens leave out cached ones; tokens of the role ``grader`` are not the
agent's. Outcome: the first score that says how well it went (C 1, P 0.5, I
and N 0, or a number from 0 to 1); all scores are in the metadata. The store,
files and reasoning are not kept.
"""

from __future__ import annotations

from typing import Any

from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.assembly import number, plain, total, word
from poc.ingest.readers.inspect_events import Attachments, Sample
from poc.ingest.readers.nodes import Score, outcome, tokens
from poc.trajectory import Outcome, Usage

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_EVALUATED = ("run_id", "eval_id", "task_id", "created", "task_version", "task_args", "tags", "metadata", "solver")


def content_text(content: Any) -> str | None:
    """The words of a content; reasoning and calls in it are told elsewhere or not kept."""
    if not isinstance(content, list):
        return plain(content)
    parts: list[str] = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif kind in ("image", "audio", "video", "document"):
            parts.append(f"[{kind}]")
        elif kind not in ("reasoning", "tool_use"):
            parts.append(plain(block) or "")
    return "\n".join(parts)


def error_text(value: Any) -> str | None:
    """What an error says; its kind where it says nothing."""
    if isinstance(value, dict):
        return word(value.get("message")) or word(value.get("type"))
    return word(value)


def asked_for(asked: Any) -> str | None:
    """The task: the input, or where that is a conversation what the user says last in it."""
    if not isinstance(asked, list):
        return plain(asked)
    said = [
        content_text(item.get("content")) for item in asked if isinstance(item, dict) and item.get("role") == "user"
    ]
    return next((text for text in reversed(said) if text), None)


def tokens_of_call(usage: Any) -> Usage | None:
    """Tokens as Inspect counts them."""
    if not isinstance(usage, dict):
        return None
    return tokens(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        total=usage.get("total_tokens"),
        cached=usage.get("input_tokens_cache_read"),
        stored=usage.get("input_tokens_cache_write"),
        reasoning=usage.get("reasoning_tokens"),
    )


def spent(sample: Sample) -> tuple[Usage | None, float | None]:
    """Tokens and dollars of the sample without its graders."""
    by_model = sample.model_usage if isinstance(sample.model_usage, dict) else {}
    by_role = sample.role_usage if isinstance(sample.role_usage, dict) else {}
    graded = by_role.get("grader")
    graded = graded if isinstance(graded, dict) else {}
    used = total(usage for usage in map(tokens_of_call, by_model.values()) if usage is not None)
    costs = [number(usage.get("total_cost")) for usage in by_model.values() if isinstance(usage, dict)]
    cost = sum(c for c in costs if c is not None) if costs and None not in costs else None
    minus = tokens_of_call(graded)
    if used is not None and minus is not None:
        used = Usage(
            **{
                name: None if (whole := getattr(used, name)) is None else max(0, whole - (getattr(minus, name) or 0))
                for name in Usage.__struct_fields__
            }
        )
        cost = None if cost is None else max(0.0, cost - (number(graded.get("total_cost")) or 0.0))
    return used, cost


def outcome_of(sample: Sample) -> Outcome | None:
    """The first score that says how well it went."""
    for name, score in _scores(sample).items():
        value = score.get("value")
        says = _LETTERS.get(value) if isinstance(value, str) else None
        if says is None:
            says = read_outcome(value)
        if says is not None:
            return Outcome(value=says, provenance=f"log:scores.{name}")
        if isinstance(value, dict):
            inner = outcome([Score(str(key), _LETTERS.get(part, part)) for key, part in value.items()])
            if inner is not None:
                detail = inner.provenance.removeprefix("log:")
                return Outcome(value=inner.value, provenance=f"log:scores.{name}.{detail}")
    return None


def _scores(sample: Sample) -> dict[str, dict[str, Any]]:
    scores = sample.scores if isinstance(sample.scores, dict) else {"score": sample.score}
    return {str(name): score for name, score in scores.items() if isinstance(score, dict)}


def metadata_of(
    sample: Sample, header: dict[str, Any], evaluated: dict[str, Any], resolve: Attachments
) -> dict[str, Any]:
    """What no field of the run holds."""
    limit = sample.limit
    if limit is None:
        hit = next((event for event in sample.events if event.event == "sample_limit"), None)
        limit = None if hit is None else {"type": hit.type, "limit": hit.limit}
    error = sample.error.get("message") if isinstance(sample.error, dict) else sample.error
    found: dict[str, Any] = {
        "target": sample.target,
        "choices": sample.choices,
        "scores": _scores(sample),
        "limit": limit,
        "error": error,
        "invalidation": sample.invalidation,
        "working_time_s": sample.working_time,
        "sample": resolve(sample.metadata),
        "eval": {key: evaluated[key] for key in _EVALUATED if evaluated.get(key) not in (None, {}, [])},
        "status": header.get("status") or ("interrupted" if evaluated else None),
    }
    dataset = evaluated.get("dataset")
    if isinstance(dataset, dict) and dataset.get("name"):
        found["eval"]["dataset"] = dataset["name"]
    return {key: value for key, value in found.items() if value not in (None, {}, [])}
