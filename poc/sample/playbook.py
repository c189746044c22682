"""What the simulated agent wants to do next: its knowledge of the trade.

From the request and from its notes (those earlier calls that it remembers) it
derives an ordered list of goals, each a call that it would like to have made.
It is not the world's check: it knows no task and no end state, it may be
wrong, and it goes only by what the notes say. A *duty* is a goal that no
customer asks for and only the house rules demand; duties get overlooked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from poc.sample.reading import PastCall
from poc.sample.requests import Request

KNOWN_TOOLS = frozenset(
    {
        "find_customer", "list_orders", "get_order", "get_product", "check_return_policy", "track_shipment",
        "cancel_order", "refund_order", "change_address", "exchange_item", "create_return_label", "open_claim",
        "send_replacement", "send_message", "escalate",
    }
)  # fmt: skip
_KEYS = ("email", "name", "customer_id", "order_id", "item_id", "product_id")


class Goal(msgspec.Struct, frozen=True):
    """A call that the agent would like to have made."""

    tool: str
    arguments: dict[str, Any]
    duty: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same errand: the tool and the things that it is about."""
        return errand(self.tool, self.arguments)


def errand(tool: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """The tool and the things that a call is about, without sums and words."""
    return (tool, *(str(arguments.get(key)) for key in _KEYS))


class Notes:
    """What the agent knows from the calls that it remembers."""

    def __init__(self, calls: Iterable[PastCall]) -> None:
        self.customer: str | None = None
        self.orders: dict[str, dict[str, Any]] = {}
        self.lists: list[dict[str, Any]] | None = None
        self.products: dict[str, dict[str, Any]] = {}
        self.policies: dict[str, bool] = {}
        self.tracking: dict[str, str] = {}
        self.done: set[tuple[Any, ...]] = set()
        self.failed: dict[tuple[Any, ...], str] = {}
        for call in calls:
            self._note(call)

    def _note(self, call: PastCall) -> None:
        key, result = errand(call.tool, call.arguments), call.result or {}
        if not call.answered:
            return
        if call.failed:
            self.failed[key] = str(result.get("error", ""))
            return
        self.done.add(key)
        if call.tool == "find_customer" and "customer_id" in result:
            self.customer = result["customer_id"]
        elif call.tool == "get_order" and isinstance(result.get("items"), list):
            self.orders[str(result.get("order_id"))] = result
        elif call.tool == "list_orders" and isinstance(result.get("orders"), list):
            self.lists = result["orders"]
        elif call.tool == "get_product" and isinstance(result.get("variants"), list):
            self.products[str(result.get("product_id"))] = result
        elif call.tool == "check_return_policy":
            self.policies[str(result.get("item_id"))] = bool(result.get("eligible"))
        elif call.tool == "track_shipment":
            self.tracking[str(result.get("order_id"))] = str(result.get("carrier_status"))

    def refused(self, tool: str, **arguments: Any) -> bool:
        """Whether this errand was tried and failed."""
        return errand(tool, arguments) in self.failed


def wanted(request: Request, notes: Notes, overlooked: Set[str]) -> list[Goal]:
    """The goals so far, in order, finished ones included; reading more may unlock more.

    overlooked: tools whose duties the agent does not think of.
    """
    return [goal for goal in _wanted(request, notes, overlooked) if not (goal.duty and goal.tool in overlooked)]


def _wanted(request: Request, notes: Notes, overlooked: Set[str]) -> Iterator[Goal]:
    orders: list[dict[str, Any]] = []
    complete = yield from _identify(request, notes, orders)
    if not complete:
        return
    for order in orders:
        if request.intent == "cancel":
            yield from _cancel(request, notes, order, overlooked)
        elif request.intent == "address":
            yield from _address(request, order)
        elif request.intent == "exchange":
            yield from _exchange(request, notes, order, overlooked)
        elif request.intent == "delivery":
            yield from _delivery(request, notes, order, overlooked)
        elif request.intent == "return":
            for item in _items(request, order):
                yield from _return(notes, order, item, overlooked)
    customer = orders[0]["customer_id"] if orders else notes.customer
    if customer:
        text = f"About your request: {_summary(notes, orders)}"
        yield Goal("send_message", {"customer_id": customer, "text": text}, duty=True)


def _identify(request: Request, notes: Notes, orders: list[dict[str, Any]]) -> Iterator[Goal]:
    """Find out who asks and about which orders. Fills `orders`; returns whether that is settled."""
    who = {"email": request.email} if request.email else {"name": request.name} if request.name else None
    if who and (request.email or not request.order_ids):
        yield Goal("find_customer", who)
    for order_id in request.order_ids:
        yield Goal("get_order", {"order_id": order_id})
    if not all(i in notes.orders or notes.refused("get_order", order_id=i) for i in request.order_ids):
        return False
    owner = notes.customer
    for order_id in request.order_ids:
        order = notes.orders.get(order_id)
        if order and (owner is None or not request.email or order["customer_id"] == owner):
            orders.append(order)
    if orders:
        return True
    if who and not request.email and request.order_ids:
        yield Goal("find_customer", who)
    if owner is None:
        return False
    yield Goal("list_orders", {"customer_id": owner})
    if notes.lists is None:
        return False
    likely = _likely(request, notes.lists)
    if likely is None:
        return True
    yield Goal("get_order", {"order_id": likely})
    if likely in notes.orders:
        orders.append(notes.orders[likely])
        return True
    return False


def _likely(request: Request, listed: list[dict[str, Any]]) -> str | None:
    """The order that the customer most likely means: names the product, in a state that fits the wish."""
    fits = {"cancel": ("processing",), "address": ("processing", "shipped"), "delivery": ("shipped", "delivered")}
    states = fits.get(request.intent or "", ("delivered",))

    def rank(order: dict[str, Any]) -> tuple[bool, bool, int]:
        places = [place for name in order.get("products", ()) if (place := request.mentions(name)) is not None]
        return (not places, order.get("status") not in states, min(places, default=0))

    return min(listed, key=rank)["order_id"] if listed else None


def _items(request: Request, order: dict[str, Any]) -> list[dict[str, Any]]:
    named = [item for item in order["items"] if request.mentions(item["product"]) is not None]
    return named or list(order["items"])


def _ids(order: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    return {"order_id": order["order_id"], "item_id": item["item_id"]}


def _worth(item: dict[str, Any]) -> float:
    return round(item["price"] * item["quantity"], 2)


def _cancel(request: Request, notes: Notes, order: dict[str, Any], overlooked: Set[str]) -> Iterator[Goal]:
    order_id = order["order_id"]
    if order["status"] in ("processing", "cancelled"):
        if order["status"] == "processing":
            yield Goal("cancel_order", {"order_id": order_id, "reason": "customer's request"})
        if order["payment"] != "invoice":
            yield Goal("refund_order", {"order_id": order_id, "amount": order["total"]}, duty=True)
    elif order["status"] == "delivered" and request.wants_return:
        for item in _items(request, order):
            yield from _return(notes, order, item, overlooked)


def _return(notes: Notes, order: dict[str, Any], item: dict[str, Any], overlooked: Set[str]) -> Iterator[Goal]:
    ids = _ids(order, item)
    yield Goal("check_return_policy", ids, duty=True)
    # Who does not think of the policy takes every item back.
    if notes.policies.get(item["item_id"], "check_return_policy" in overlooked):
        yield Goal("create_return_label", ids, duty=True)
        yield Goal("refund_order", {**ids, "amount": _worth(item)})


def _exchange(request: Request, notes: Notes, order: dict[str, Any], overlooked: Set[str]) -> Iterator[Goal]:
    for item in _items(request, order):
        ids = _ids(order, item)
        yield Goal("check_return_policy", ids, duty=True)
        if not notes.policies.get(item["item_id"], "check_return_policy" in overlooked):
            continue
        yield Goal("get_product", {"product_id": item["product_id"]})
        product = notes.products.get(item["product_id"])
        if product is None:
            continue
        variant = request.wanted_variant(product["variants"], item["variant_id"])
        if variant and variant["stock"] >= item["quantity"]:
            yield Goal("exchange_item", {**ids, "variant_id": variant["variant_id"]})
            yield Goal("create_return_label", ids, duty=True)
        elif request.wants_refund:
            yield from _return(notes, order, item, overlooked)


def _address(request: Request, order: dict[str, Any]) -> Iterator[Goal]:
    if request.address is None:
        return
    street, city, postal_code = request.address
    if order["status"] == "processing":
        place = {"street": street, "city": city, "postal_code": postal_code}
        yield Goal("change_address", {"order_id": order["order_id"], **place})
    elif order["status"] == "shipped":
        reason = f"redirect to {street}, {city}, {postal_code}"
        yield Goal("escalate", {"order_id": order["order_id"], "reason": reason}, duty=True)


def _delivery(request: Request, notes: Notes, order: dict[str, Any], overlooked: Set[str]) -> Iterator[Goal]:
    order_id = order["order_id"]
    if not request.damaged:
        yield Goal("track_shipment", {"order_id": order_id})
    carrier = notes.tracking.get(order_id)
    kind = "damaged" if request.damaged else {"lost": "lost", "delivered": "missing"}.get(carrier or "")
    if kind is None:
        return
    yield Goal("open_claim", {"order_id": order_id, "kind": kind}, duty=True)
    for item in _items(request, order):
        ids = _ids(order, item)
        refund = Goal("refund_order", {**ids, "amount": _worth(item)})
        if request.wants_refund:
            yield refund
            continue
        yield Goal("get_product", {"product_id": item["product_id"]}, duty=True)
        product = notes.products.get(item["product_id"])
        if product is None and "get_product" not in overlooked:
            continue
        stock = [v["stock"] for v in (product or {}).get("variants", ()) if v["variant_id"] == item["variant_id"]]
        sold_out = bool(stock) and stock[0] < item["quantity"]
        if sold_out or "stock" in notes.failed.get(errand("send_replacement", ids), ""):
            yield refund
        else:
            yield Goal("send_replacement", ids)


def _summary(notes: Notes, orders: list[dict[str, Any]]) -> str:
    words = {
        "cancel_order": "the order is cancelled",
        "refund_order": "your money comes back",
        "change_address": "the address is changed",
        "exchange_item": "the exchange is under way",
        "create_return_label": "a return label is attached",
        "open_claim": "we have opened a claim with the carrier",
        "send_replacement": "a replacement is on its way",
        "escalate": "the dispatch team looks into it",
    }
    said = [text for tool, text in words.items() if any(key[0] == tool for key in notes.done)]
    about = ", ".join(order["order_id"] for order in orders)
    return f"{about}: {'; '.join(said) or 'we could not change anything, since our rules do not allow it'}."
