"""What a tool does to the world, guessed from the verb in its name, or said by a person.

A guess is marked as one wherever it is shown; a tool whose name says nothing
has no class (NULL) until somebody gives one.
"""

from __future__ import annotations

import re

from poc.errors import InputError, did_you_mean
from poc.trajectory import EffectClass
from poc.workspace import Workspace

_READ = """get find search list lookup look read fetch query check show view describe calculate compute count retrieve
browse inspect verify validate estimate compare track think screenshot visit select"""
_WRITE = """update book create modify change edit add set put write save insert exchange reserve schedule move rename
assign upload apply open return replace enable disable register append mark toggle"""
_IRREVERSIBLE = """cancel delete refund send pay remove transfer purchase buy drop destroy publish email notify charge
submit terminate withdraw post erase purge revoke ship dispatch"""
_VERBS: dict[EffectClass, frozenset[str]] = {
    "read": frozenset(_READ.split()),
    "write": frozenset(_WRITE.split()),
    "irreversible": frozenset(_IRREVERSIBLE.split()),
}


def guess_effect(tool: str) -> EffectClass | None:
    """The effect class that the first telling word of the name suggests; None where none tells.

    >>> guess_effect("getUserDetails"), guess_effect("shop.cancel_order"), guess_effect("frobnicate")
    ('read', 'irreversible', None)
    """
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool).lower()
    for word in re.split(r"[^a-z]+", snake):
        for effect, verbs in _VERBS.items():
            if word in verbs:
                return effect
    return None


def set_effect(workspace: Workspace, tool: str, effect: EffectClass) -> None:
    """Store what a person says a tool does. Raises `InputError` for an unknown tool or class."""
    if effect not in _VERBS:
        raise InputError(
            f"There is no effect class '{effect}'.{did_you_mean(effect, _VERBS)}",
            todo=f"Use one of: {', '.join(_VERBS)}.",
        )
    with workspace.write() as db:
        known = [str(row[0]) for row in db.execute("SELECT tool FROM tools ORDER BY tool").fetchall()]
        if tool not in known:
            raise InputError(f"No log in this workspace uses the tool '{tool}'.{did_you_mean(tool, known)}")
        db.execute("UPDATE tools SET effect = ?, effect_is_guess = false WHERE tool = ?", [effect, tool])
