"""What a file would be read as, told before it is imported: from Python and from the shell."""

import json
import subprocess
import sys

import yaml

from poc.ingest import describe, import_logs, load_mapping


def shell(*arguments):
    done = subprocess.run([sys.executable, "-m", "poc.cli", "describe", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_table_shows_its_columns_and_first_rows(tmp_path):
    table = tmp_path / "calls.csv"
    table.write_text("session_id,tool,args,note\n" + "".join(f"s{n},look,{{}},x\n" for n in range(50)))
    facts = describe(table)
    assert (facts.format, facts.columns) == ("table", ["session_id", "tool", "args", "note"])
    assert facts.mapping == {"tool": "tool", "arguments": "args", "run_id": "session_id"}
    assert len(facts.rows) == 8
    assert facts.preview({"tool": "tool", "run_id": "session_id", "gap_s": "60"})[1] == {"tool": "look", "run_id": "s1"}


def test_the_shell_keeps_a_mapping_that_import_takes(workspace, tmp_path):
    table = tmp_path / "calls.jsonl"
    table.write_text('{"toolName": "look", "args": {"a": 1}, "sessionKey": "s"}\n')
    kept = tmp_path / "mapping.yaml"
    code, said, _ = shell(str(table), "--save", str(kept), "--json")
    assert code == 0
    assert json.loads(said)["mapping"] == yaml.safe_load(kept.read_text()) == load_mapping(kept)
    assert import_logs(workspace, table, mapping=kept).steps == 1


def test_other_files(tmp_path):
    prose = tmp_path / "prose.md"
    prose.write_text("# Nothing to see\n")
    code, said, _ = shell(str(prose))
    assert (code, "no format that is known here" in said) == (0, True)
    code, said, complaint = shell(str(tmp_path / "absent.csv"))
    assert code != 0
    assert "absent.csv" in said + complaint
    assert "Traceback" not in said + complaint
