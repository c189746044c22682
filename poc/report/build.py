"""One self-contained HTML file from stored results.

No network at all: styles, scripts and data are inside, and a content policy
lets only the two scripts of the page run, named by their hashes, so that text
from a log could not run even if it slipped through the escaping.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from poc.language import Language
from poc.report.details import details
from poc.report.document import Document
from poc.report.evidence import evidence
from poc.report.facts import Facts, read_facts
from poc.report.limits import glossary, limits, sources
from poc.report.setup import readiness, run, subgoals
from poc.report.summary import summary
from poc.report.wording import say
from poc.workspace import Workspace

_HERE = Path(__file__).parent


def build_report(workspace: Workspace, experiment_id: str, language: Language = "en") -> str:
    """The report on one decided experiment as one HTML text (about 5 MB, most of it the chart library).

    Rebuilt from the workspace alone; nothing is called and nothing is stored.
    Raises `InputError` when there is no such experiment, or no verdict yet.
    """
    return render(document(read_facts(workspace, experiment_id), language), language)


def document(facts: Facts, language: Language) -> Document:
    """The page as parts, before it becomes HTML."""
    head = summary(facts, language)
    return Document(
        title=say("page.title", language, verdict=head.verdict.text, name=facts.experiment["name"] or ""),
        language=language,
        summary=head,
        sections=[
            evidence(facts, language),
            details(facts, language),
            readiness(facts, language),
            subgoals(facts, language),
            run(facts, language),
            limits(facts, language),
            glossary(language),
            sources(facts, language),
        ],
        footer=[
            say(
                "page.footer",
                language,
                workspace=facts.workspace_name,
                experiment=facts.experiment["experiment_id"],
                hash=facts.verdict.verdict_hash,
            )
        ],
    )


def render(page: Document, language: Language) -> str:
    """The parts as HTML."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = (_HERE / "report.js").read_text(encoding="utf-8")
    library = _library()
    html = environment.get_template("report.html.j2").render(
        page=page,
        say=lambda key: say(key, language),
        css=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        figures=_data({plot.id: json.loads(plot.figure.to_json() or "{}") for plot in page.plots}),
        plotly=Markup(_PLACE),
        script=Markup(script),
        script_hashes=Markup(" ".join(_digest(text) for text in (library, script))),
    )
    return _HIDDEN.sub(_shown, html).replace(_PLACE, library)


_PLACE = "/*<library>*/"
"""Where the chart library goes. Escaped text cannot hold it, so nothing from a log stands in for it."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control letters, among them those that turn the direction of writing around for the rest of a line."""


def _shown(found: re.Match[str]) -> str:
    """A control letter from a log as something that can be seen."""
    return f"[U+{ord(found[0]):04X}]"


@cache
def _library() -> str:
    """Plotly's own script; a closing tag inside would end the element too early."""
    return get_plotlyjs().replace("</script", "<\\/script")


def _data(figures: object) -> Markup:
    """JSON that is safe inside a script element: no character there can end it or start a comment."""
    text = json.dumps(figures, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() + "'"
