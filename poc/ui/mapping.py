"""Which column of a table holds what: suggested, shown on the first rows, corrected, kept as YAML and used again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
import yaml

from poc import api
from poc.errors import PocError
from poc.ui.show import error, guarded, plain
from poc.ui.words import named, say

_ALWAYS = (
    "tool",
    "arguments",
    "result",
    "run_id",
    "status",
    "started_at",
    "duration_s",
    "task_key",
    "task_text",
    "outcome",
)
_CELL = 200
"""Characters of a cell that the preview shows."""


def mapping_for(chosen: list[Path]) -> dict[str, str] | None:
    """The columns of the first table among the files, to be corrected; None where there is none."""
    for path in chosen:
        try:
            facts = _described(str(path), path.stat().st_mtime_ns if path.is_file() else 0)
        except PocError as problem:
            error(problem)
            continue
        if facts is not None and facts.columns:
            with st.container(border=True), guarded():
                return _edited(path, facts)
    return None


def as_yaml(mapping: dict[str, str]) -> str:
    """The mapping as the file that `poc import --mapping` takes."""
    return yaml.safe_dump(mapping, allow_unicode=True, sort_keys=False)


@st.cache_data(show_spinner=False, max_entries=50)
def _described(path: str, stamp: int) -> Any:
    return api.describe(path) if stamp else None


def _edited(path: Path, facts: api.FileFacts) -> dict[str, str]:
    st.markdown(f"**{say('data.mapping', file=plain(path.name))}**")
    st.caption(say("data.mapping_text"))
    suggested = _kept(path, facts) or facts.mapping
    # What is neither a field nor one of its columns is an option: the table of a database, the gap between runs.
    mapping = {field: value for field, value in suggested.items() if field not in api.FIELDS}
    places = st.columns(3)
    shown = [field for field in api.FIELDS if field in _ALWAYS or field in suggested]
    for position, field in enumerate(shown):
        options = ["", *facts.columns]
        first = suggested.get(field, "")
        column = places[position % 3].selectbox(
            named("field", field),
            options,
            index=options.index(first) if first in options else 0,
            format_func=lambda name: name or "—",
            key=f"map-{path.name}-{field}",
            help=field,
        )
        if column:
            mapping[field] = column
    _gap(path, mapping)
    rows = facts.preview(mapping)
    if rows:
        st.caption(say("data.mapping_preview", n=len(rows)))
        frame = pd.DataFrame([{named("field", key): _cell(value) for key, value in row.items()} for row in rows])
        st.dataframe(frame, hide_index=True)
    st.download_button(
        say("data.mapping_save"),
        as_yaml(mapping),
        file_name="mapping.yaml",
        mime="application/yaml",
        icon=":material/save:",
        key=f"map-save-{path.name}",
    )
    return mapping


def _gap(path: Path, mapping: dict[str, str]) -> None:
    """Where rows have times but name no run: how long a silence ends one."""
    if "run_id" in mapping:
        mapping.pop("gap_s", None)
        return
    if "started_at" not in mapping and "ended_at" not in mapping:
        return
    minutes = st.number_input(
        say("data.mapping_gap"),
        min_value=0.0,
        value=float(mapping.get("gap_s", 0)) / 60,
        step=5.0,
        help=say("data.mapping_gap_help"),
        key=f"map-gap-{path.name}",
    )
    mapping.pop("gap_s", None)
    if minutes:
        mapping["gap_s"] = f"{minutes * 60:g}"


def _kept(path: Path, facts: api.FileFacts) -> dict[str, str] | None:
    """A mapping that was kept before, given as a file."""
    with st.expander(say("data.mapping_use")):
        upload = st.file_uploader(say("data.mapping_file"), type=["yaml", "yml"], key=f"map-file-{path.name}")
    if upload is None:
        return None
    try:
        mapping = api.parse_mapping(upload.getvalue(), where=upload.name)
        api.check_mapping(mapping, facts.columns, where=upload.name)
    except PocError as problem:
        error(problem)
        return None
    # The fields below are set to it once; after that they are the person's to change.
    if st.session_state.get(f"map-used-{path.name}") != upload.file_id:
        st.session_state[f"map-used-{path.name}"] = upload.file_id
        for field in api.FIELDS:
            st.session_state[f"map-{path.name}-{field}"] = mapping.get(field, "")
    return mapping


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CELL else text[:_CELL] + " …"
