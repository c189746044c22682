"""From pydantic's complaints about a file to errors that name its lines.

Knows the shape of complaints, not what a subgoal is: the caller says which
keys are known where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from poc.errors import PocError, did_you_mean
from poc.subgoals.source import Place, Source, SpecError

_OWN = "poc"
_MOST_SHOWN = 10


def located(error: PocError, *below: str | int) -> PydanticCustomError:
    """An error of ours as pydantic wants it inside a validator, so that it comes back with its place."""
    return PydanticCustomError(
        _OWN,
        "{what}",
        {"what": error.what, "todo": error.todo, "below": below + ((error.where,) if error.where else ())},
    )


def explained(error: ValidationError, source: Source, known_keys: Mapping[str, Sequence[str]]) -> SpecError:
    """One `SpecError` for all complaints about a file, each with its line.

    `known_keys`: the keys that may stand under a key ('' for the top).
    """
    problems = [_problem(details, source, known_keys) for details in error.errors(include_url=False)]
    if len(problems) == 1:
        return problems[0]
    shown = [f"- {problem.where}: {problem.what}" for problem in problems[:_MOST_SHOWN]]
    if len(problems) > _MOST_SHOWN:
        shown.append(f"- and {len(problems) - _MOST_SHOWN} more")
    return SpecError(
        f"The subgoal set has {len(problems)} problems:\n" + "\n".join(shown),
        where=problems[0].where,
        todo=problems[0].todo or "Mend these places.",
    )


def _problem(details: ErrorDetails, source: Source, known_keys: Mapping[str, Sequence[str]]) -> SpecError:
    place: Place = tuple(details["loc"])
    context: dict[str, Any] = details.get("ctx", {})
    kind = details["type"]
    if kind == _OWN:
        return source.error(context["what"], (*place, *context["below"]), context["todo"])
    if kind == "extra_forbidden":
        parents = [part for part in place[:-1] if isinstance(part, str)]
        known = known_keys.get(parents[-1] if parents else "", ())
        return source.error(f"Unknown key '{place[-1]}'.{did_you_mean(str(place[-1]), known)}", place)
    if kind == "missing":
        return source.error(f"The key '{place[-1]}' is missing.", place[:-1], f"Add: {place[-1]}: ...")
    if kind == "literal_error":
        options = [option.strip(" '") for option in str(context["expected"]).replace(" or ", ",").split(",")]
        shown = details["input"]
        return source.error(f"'{shown}' is not possible here.{did_you_mean(str(shown), options)}", place)
    if kind == "value_error":
        return source.error(f"{str(context['error'])[0].upper()}{str(context['error'])[1:]}.", place)
    if kind == "string_pattern_mismatch":
        return source.error(
            f"'{details['input']}' cannot be an id.", place, "Use letters, digits, _ and -, starting with a letter."
        )
    if kind == "string_type":
        return source.error(f"A text is needed here, not {details['input']!r}.", place, "Put it in quotes.")
    if kind in ("dict_type", "model_type", "model_attributes_type"):
        return source.error("A mapping (key: value) is needed here.", place)
    if kind == "tuple_type":
        return source.error("A list is needed here.", place)
    return source.error(f"{details['msg'].replace('Input should', 'This should')}.", place)
