"""A reader that another package offers: the one that ARCHITECTURE.md shows, installed, found and used."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_documented_reader_works_from_an_entry_point(tmp_path):
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(\"\"\"Acme.*?)```", text, re.DOTALL)
    assert len(code.strip().splitlines()) <= 45
    package = tmp_path / "site"
    (package / "acme_poc").mkdir(parents=True)
    (package / "acme_poc" / "__init__.py").write_text("")
    (package / "acme_poc" / "reader.py").write_text(code, encoding="utf-8")
    facts = package / "acme_poc-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-poc\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[poc.readers]\nacme = acme_poc.reader\n")

    calls = [
        {"tool": "find", "args": {"id": 7}, "out": "found", "ok": True, "at": "2026-11-30T10:00:00Z"},
        {"tool": "pay", "args": "not JSON", "out": "declined", "ok": False},
        {"tool": "mail"},
    ]
    log = tmp_path / "acme.jsonl"
    lines = [
        json.dumps({"acme_session": "s1", "task": "Pay order 7", "calls": calls}),
        '{"acme_session": "s2"}',
        "broken",
    ]
    log.write_text("\n".join(lines))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}

    def poc(*arguments):
        command = [sys.executable, "-m", "poc.cli", *arguments, "--workspace", str(tmp_path / "w.duckdb"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return json.loads(done.stdout)

    result = poc("import", str(log))
    assert (result["read"], result["imported"], result["rejected"], result["steps"]) == (3, 1, 2, 3)
    assert result["sources"][0]["format"] == "acme"
    assert [row["place"] for row in poc("rejects")["rejects"]] == ["line 2", "line 3"]
