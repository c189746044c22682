"""The house keeps its order: public names, module sizes, nothing of any one machine in the tree."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from pathlib import Path

import pytest

from poc.ingest import READERS

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "poc").rglob("__init__.py") if path.parent.name not in ("pages",))
TOP_LEVEL = {
    ".ci",
    ".gitignore",
    ".streamlit",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "app.py",
    "constraints.txt",
    "data",
    "notebooks",
    "poc",
    "pyproject.toml",
    "tests",
}


def tracked() -> list[Path]:
    """The files of the project; the tree itself where git is not to be had."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_names_are_listed_and_exist(package: Path) -> None:
    name = ".".join(package.relative_to(ROOT).parts)
    module = importlib.import_module(name)
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module or "").startswith(name)
    }
    if imported:
        assert len(set(module.__all__)) == len(module.__all__)
        assert imported <= set(module.__all__)
        assert all(hasattr(module, public) for public in module.__all__)
    assert module.__doc__


def test_the_top_level_is_what_a_newcomer_expects() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= TOP_LEVEL


def test_modules_hold_one_idea() -> None:
    long = {}
    for path in tracked():
        if path.suffix == ".py" and path.is_relative_to(ROOT / "poc") and path.exists():
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > 400:
                long[str(path.relative_to(ROOT))] = lines
    assert not long


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        path
        for path in tracked()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / "poc")
        and path.exists()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent


def test_no_path_of_a_machine_and_no_download_address() -> None:
    bad = re.compile(r"/(root|home|Users)/\w|files\.pythonhosted|pypi\.org|registry\.npmjs")
    found = []
    for path in tracked():
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".sql", ".ipynb"} and path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if bad.search(line) and path != Path(__file__):
                    found.append(f"{path.relative_to(ROOT)}:{number}")
    assert not found


def test_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines)


def test_the_readme_names_every_format() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("## What it reads") : text.index("## More")]
    last_cells = "".join(re.findall(r"\|[^|\n]*\|$", table, re.MULTILINE))
    assert set(re.findall(r"`([a-z_]+)`", last_cells)) == set(READERS)
