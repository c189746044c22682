"""Where the sample's files are: ``data/`` of a checkout, or the copy inside an installed package.

Knows no format and no content.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from poc.errors import PocError

_HERE = Path(__file__).resolve().parent
_PLACES = (_HERE.parents[1] / "data", _HERE / "data")


def data_dir() -> Path:
    """The folder with the sample's logs, subgoal sets, shop and tasks.

    Raises `PocError` when neither place has it (a broken installation).
    """
    for place in _PLACES:
        if (place / "world" / "shop.yaml").is_file():
            return place
    raise PocError(
        "The sample data is missing.",
        where=" or ".join(map(str, _PLACES)),
        todo="Install the package again, or run it from a complete checkout.",
    )


@cache
def load_yaml(relative: str) -> Any:
    """A YAML file of the sample, read once. The caller must not change what it gets."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load((data_dir() / relative).read_text(encoding="utf-8"), Loader=loader)
