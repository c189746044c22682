"""From a team's log files to the tables of the workspace, and runs back out of them."""

from poc.ingest.columns import FIELDS, check_mapping, load_mapping, parse_mapping, save_mapping, suggest_mapping
from poc.ingest.describe import FileFacts, describe
from poc.ingest.effects import guess_effect, set_effect
from poc.ingest.outcomes import JoinResult, join_outcomes
from poc.ingest.pipeline import ImportResult, Progress, import_logs
from poc.ingest.readers import READERS
from poc.ingest.readers.chat_messages import UNNAMED
from poc.ingest.stored import iter_runs, load_run

__all__ = [
    "FIELDS",
    "READERS",
    "UNNAMED",
    "FileFacts",
    "ImportResult",
    "JoinResult",
    "Progress",
    "check_mapping",
    "describe",
    "guess_effect",
    "import_logs",
    "iter_runs",
    "join_outcomes",
    "load_mapping",
    "load_run",
    "parse_mapping",
    "save_mapping",
    "set_effect",
    "suggest_mapping",
]
