"""A tiny environment of the tests' own: put an item into a colour, then send it once."""

from __future__ import annotations

import re
from typing import Any

from poc.errors import InputError
from poc.replay.environments import EnvironmentTask, ToolResult
from poc.trajectory import Outcome, ToolSchema

ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
PAINT = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "colour": {"type": "string"}},
    "required": ["item", "colour"],
}
TEXT = "Paint item {n} in red and send it to ann{n}@example.com."


class Desk:
    """State: colours of items, and what was sent. The seed changes nothing but the stamp in the look-up."""

    def __init__(self) -> None:
        self.colours: dict[str, str] = {}
        self.sent: list[str] = []
        self.item = ""
        self.seed = 0

    def tools(self) -> list[ToolSchema]:
        return [
            ToolSchema(name="look_up", description="Look an item up", parameters=ITEM, origin="given", effect="read"),
            ToolSchema(name="paint", description="Paint an item", parameters=PAINT, origin="given", effect="write"),
            ToolSchema(name="send", description="Send an item", parameters=ITEM, origin="given", effect="irreversible"),
            ToolSchema(name="explode", description="Always breaks", origin="given", effect="read"),
        ]

    def instructions(self) -> str:
        return "You work at a paint desk."

    async def reset(self, task: EnvironmentTask, seed: int) -> None:
        found = re.search(r"item (\w+)", task.text or "")
        if found is None:
            raise InputError("no item in the task")
        self.item, self.seed = found[1], seed
        self.colours, self.sent = {found[1]: "white"}, []

    def call(self, name: str, arguments: dict[str, Any]) -> ToolResult | dict[str, Any]:
        if name == "explode":
            raise RuntimeError("boom")
        item = arguments.get("item")
        if item not in self.colours:
            return ToolResult(content=f"Error: no item {item}", is_error=True)
        if name == "look_up":
            return {"item": item, "colour": self.colours[item], "owner": f"ann{item}@example.com"}
        if name == "paint":
            self.colours[item] = arguments["colour"]
            return {"painted": item}
        self.sent.append(item)
        return {"sent": item, "times": len(self.sent)}

    async def outcome(self) -> Outcome | None:
        done = self.colours[self.item] == "red" and self.sent == [self.item]
        return Outcome(value=float(done), provenance="environment")

    def close(self) -> None:
        self.colours = {}


class Blind(Desk):
    """Cannot tell how it went."""

    async def outcome(self) -> Outcome | None:
        return None


class Restless(Desk):
    """Answers differently in every process and object: what was seen before cannot be seen again."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.number = type(self).made

    def call(self, name: str, arguments: dict[str, Any]) -> ToolResult | dict[str, Any]:
        return {"number": self.number, "item": arguments.get("item")}
