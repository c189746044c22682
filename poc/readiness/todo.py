"""The findings as a list that can be handed to the team that owns the logs: Markdown to read, CSV to track.

Texts from the log (file names, tool names) are data: they cannot become
markup or a formula of a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from poc.language import Language
from poc.readiness.assess import Readiness
from poc.readiness.count import shares
from poc.readiness.examples import whole_example
from poc.readiness.findings import Finding, findings
from poc.readiness.speech import WORDS, headline
from poc.workspace import Workspace

_MOST_PLACES = 3


def todo_markdown(workspace: Workspace, readiness: Readiness, language: Language = "en") -> str:
    """Each gap with its share, where it mostly is, what it blocks, what to log, and a good record."""

    def say(key: str, **values: object) -> str:
        return WORDS.say(f"readiness.todo.{key}", language, **values)

    lines = [f"# {say('title')}", "", headline(readiness, language), ""]
    intro = say(
        "intro",
        files=workspace.value("SELECT count(*) FROM sources"),
        runs=readiness.runs,
        steps=readiness.steps,
        date=f"{readiness.assessed_at:%Y-%m-%d %H:%M}",
        level=readiness.level,
    )
    lines += [intro, ""]
    found = findings(readiness, language)
    if not found:
        return "\n".join([*lines, say("none"), ""])
    places = _places(workspace, found, language)
    for number, finding in enumerate(found, start=1):
        lines += [f"## {number}. {finding.title}", ""]
        lines += [f"- {say('severity')}: {finding.severity_name}", f"- {say('found')}: {finding.count}"]
        for key, named in places[finding.check_id].items():
            if named:
                lines.append(f"- {say(key)}: {'; '.join(_escaped(place) for place in named)}")
        lines += [f"- {say('blocks')}: {finding.blocks}", f"- {say('remedy')}: {finding.remedy}"]
        lines += [f"- {say('example')}:", "", "```json", finding.example, "```", ""]
    lines += [f"## {say('whole')}", "", say("whole_text"), "", "```json", whole_example(), "```", ""]
    return "\n".join(lines)


def todo_csv(workspace: Workspace, readiness: Readiness, language: Language = "en") -> str:
    """The same as CSV, one row a gap; the share is 0..1 and empty where nothing could be counted."""
    names = ("item", "severity", "cases", "total", "unit", "share", "files", "tools", "blocks", "remedy", "example")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(["id", *(WORDS.say(f"readiness.todo.{name}", language) for name in names)])
    found = findings(readiness, language)
    places = _places(workspace, found, language)
    for finding in found:
        share = "" if finding.share is None else f"{finding.share:.4f}"
        where = [_unarmed("; ".join(named)) for named in places[finding.check_id].values()]
        counted = [finding.cases, finding.total, finding.unit_name, share]
        told = [finding.blocks, finding.remedy, finding.example]
        writer.writerow([finding.check_id, finding.title, finding.severity_name, *counted, *where, *told])
    return out.getvalue()


def _places(workspace: Workspace, found: list[Finding], language: Language) -> dict[str, dict[str, list[str]]]:
    """The files, and for steps the tools, that a finding is mostly about; none where it is everywhere."""
    by_source = [{**part, "name": Path(part["path"]).name} for part in shares(workspace, "source").to_dict("records")]
    by_tool = shares(workspace, "tool").rename(columns={"tool": "name"}).to_dict("records")
    return {
        finding.check_id: {
            "files": _worst(by_source, finding.check_id, language),
            "tools": _worst(by_tool, finding.check_id, language),
        }
        for finding in found
    }


def _worst(parts: list[dict[Hashable, Any]], check_id: str, language: Language) -> list[str]:
    rows = [
        {**part, "cases": part["total"] - part["present"]}
        for part in parts
        if part["check_id"] == check_id and part["total"]
    ]
    if len(rows) < 2 or all(part["cases"] == part["total"] for part in rows):
        return []
    hit = sorted((part for part in rows if part["cases"]), key=lambda part: -part["cases"])
    return [
        WORDS.say("readiness.todo.place", language, name=part["name"], cases=part["cases"], total=part["total"])
        for part in hit[:_MOST_PLACES]
    ]


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", text.replace("\n", " "))


def _unarmed(text: str) -> str:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text
