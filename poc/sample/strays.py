"""The wrong turns of the simulated agent: calls that nobody asked for.

Most are needless look-ups, some are the right call with a wrong number, a few
are hasty deeds that change the world. Arguments come from what the agent has
in its notes. Knows nothing of what a task accepts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from poc.sample.playbook import Goal, Notes
from poc.sample.requests import Request

_SLIP, _HASTY = 0.3, 0.25
_LOOKUPS = ("list_orders", "track_shipment", "get_product", "check_return_policy", "get_order", "find_customer")
_DEEDS = ("escalate", "create_return_label", "refund_order", "open_claim", "send_message")


def stray(request: Request, notes: Notes, offered: Mapping[str, Any], goal: Goal | None, rng: random.Random) -> Goal:
    """One wrong turn with the offered tools. goal: what would have been right, if anything."""
    kind = rng.random()
    if goal is not None and kind < _SLIP and "order_id" in goal.arguments:
        return msgspec.structs.replace(goal, arguments={**goal.arguments, "order_id": _mistyped(goal, rng)})
    pool = _DEEDS if kind < _SLIP + _HASTY else _LOOKUPS
    able = {tool: arguments for tool, arguments in _possible(request, notes) if tool in offered}
    choices = [tool for tool in pool if tool in able] or sorted(able)
    if not choices:
        # Nothing is known yet: ask for the first thing offered, with nothing to go by.
        tool = next(iter(offered))
        required = offered[tool].get("parameters", {}).get("required", ())
        return Goal(tool, dict.fromkeys(required, "unknown"))
    tool = rng.choice(choices)
    return Goal(tool, able[tool])


def _mistyped(goal: Goal, rng: random.Random) -> str:
    digits = list(str(goal.arguments["order_id"]))
    place = rng.randrange(2, len(digits) - 1) if len(digits) > 3 else 0
    digits[place : place + 2] = reversed(digits[place : place + 2])
    text = "".join(digits)
    return text if text != goal.arguments["order_id"] else f"{text[:-1]}{(int(text[-1]) + 1) % 10}"


def _possible(request: Request, notes: Notes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool that the notes give arguments for."""
    if request.email or request.name:
        yield "find_customer", {"email": request.email} if request.email else {"name": request.name}
    customer = notes.customer
    order = next(iter(notes.orders.values()), None)
    if order:
        customer = customer or order["customer_id"]
        order_id, item = order["order_id"], order["items"][0]
        ids = {"order_id": order_id, "item_id": item["item_id"]}
        yield "get_order", {"order_id": order_id}
        yield "track_shipment", {"order_id": order_id}
        yield "get_product", {"product_id": item["product_id"]}
        yield "check_return_policy", ids
        yield "create_return_label", ids
        yield "refund_order", {**ids, "amount": round(item["price"] * item["quantity"], 2)}
        yield "cancel_order", {"order_id": order_id, "reason": "customer's request"}
        yield "send_replacement", ids
        yield "exchange_item", {**ids, "variant_id": item["variant_id"]}
        yield "open_claim", {"order_id": order_id, "kind": "missing"}
        yield "escalate", {"order_id": order_id, "reason": "please look into this order"}
        if request.address:
            street, city, postal_code = request.address
            place = {"street": street, "city": city, "postal_code": postal_code}
            yield "change_address", {"order_id": order_id, **place}
    elif request.order_ids:
        yield "get_order", {"order_id": request.order_ids[0]}
        yield "track_shipment", {"order_id": request.order_ids[0]}
    if customer:
        yield "list_orders", {"customer_id": customer}
        yield "send_message", {"customer_id": customer, "text": "We are looking into your request."}
