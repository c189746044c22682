"""The verbs from the shell: thin calls into `poc.api`.

Every verb takes ``--workspace`` and ``--json``. With ``--json`` stdout holds
exactly one JSON object, errors included; progress goes to stderr and only to
a terminal. Exit codes are those of `poc.errors.ExitCode`.
"""

from poc.cli.verbs import app

__all__ = ["app", "main"]


def main() -> None:
    """The console script."""
    app()
