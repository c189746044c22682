"""Does telling your agent its progress help, and is it worth the tokens and the delay?

The verbs, in the order of the process::

    import poc

    workspace = poc.open("team.duckdb")
    poc.import_logs(workspace, ["results.json"])
    poc.readiness(workspace)
    poc.load_subgoals(workspace, "subgoals/")
    poc.score(workspace)
    poc.plan(workspace, mode="next_step", model=poc.ModelSettings(name="..."))
    poc.run(workspace)
    poc.decide(workspace)
    poc.report(workspace, path="report.html")

Everything a workspace holds is also in `poc.frames`, as pandas frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poc.api import (
        ModelSettings,
        decide,
        frames,
        import_logs,
        load_subgoals,
        open,  # noqa: A004  # the verb; `poc.open` reads as it should
        plan,
        readiness,
        report,
        run,
        score,
        validity,
    )

__version__ = "0.1.0"

__all__ = [
    "ModelSettings",
    "decide",
    "frames",
    "import_logs",
    "load_subgoals",
    "open",
    "plan",
    "readiness",
    "report",
    "run",
    "score",
    "validity",
]


def __getattr__(name: str) -> Any:
    """Bring the verbs in when the first one is asked for, so that `import poc` costs nothing.

    All of them at once, and after the rooms are loaded: `readiness` and
    `report` are names of rooms too, and here the verb shall win.
    """
    if name not in __all__:
        raise AttributeError(f"module 'poc' has no attribute '{name}'")
    from poc import api

    globals().update({verb: getattr(api, verb) for verb in __all__})
    return globals()[name]
