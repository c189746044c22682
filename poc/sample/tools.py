"""The tools of the sample world: JSON Schemas, effect classes, and what each does to the shop's database.

Every tool is one function over the SQL state. What the shop refuses is a
`Refusal`, which the world turns into a tool error; arguments are checked
against the schema first. Knows no task and no model.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import date
from typing import Any

from poc.sample.shop import today
from poc.sample.toolbox import STRING, TOOLS, Refusal, check_arguments, tool

__all__ = ["RETURN_DAYS", "TOOLS", "Refusal", "check_arguments"]

RETURN_DAYS = 30


def _id(what: str, pattern: str) -> dict[str, Any]:
    return {**STRING, "description": f"{what}, like {pattern}"}


_ORDER = _id("Number of the order", "W-20000")
_ITEM = _id("Number of the item in its order", "W-20000-1")
_CUSTOMER = _id("Number of the customer", "C-100")


# Reading -----------------------------------------------------------------------------------------------------


@tool(
    "read",
    "Find a customer by email address or by full name.",
    [],
    email={**STRING, "description": "Email address"},
    name={**STRING, "description": "Full name"},
)
def find_customer(db: sqlite3.Connection, email: str | None = None, name: str | None = None) -> dict[str, Any]:
    """Who is this?"""
    if email is None and name is None:
        raise Refusal("Give an email address or a name.")
    row = db.execute(
        "SELECT * FROM customers WHERE email = lower(?) OR lower(name) = lower(?)", (email or "", name or "")
    ).fetchone()
    if row is None:
        raise Refusal("No such customer.")
    return dict(row)


@tool("read", "List all orders of a customer with status and products.", ["customer_id"], customer_id=_CUSTOMER)
def list_orders(db: sqlite3.Connection, customer_id: str) -> dict[str, Any]:
    """The customer's orders, newest first."""
    _customer(db, customer_id)
    orders = []
    for row in db.execute(
        "SELECT * FROM orders WHERE customer_id = ? ORDER BY placed_on DESC, order_id", (customer_id,)
    ):
        products = [item["product"] for item in _items(db, row["order_id"])]
        orders.append({key: row[key] for key in ("order_id", "status", "placed_on")} | {"products": products})
    return {"customer_id": customer_id, "orders": orders}


@tool("read", "Get one order: items, prices, status, address, payment.", ["order_id"], order_id=_ORDER)
def get_order(db: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    """Everything about one order except its parcel."""
    order = _order(db, order_id)
    items = _items(db, order_id)
    keys = ("order_id", "customer_id", "status", "payment", "placed_on", "promised_by", "delivered_on")
    return {key: order[key] for key in keys} | {
        "address": {key: order[key] for key in ("street", "city", "postal_code")},
        "items": items,
        "total": round(sum(item["price"] * item["quantity"] for item in items), 2),
    }


@tool(
    "read",
    "Get a product with all its variants, prices and stock.",
    ["product_id"],
    product_id=_id("Number of the product", "P-10"),
)
def get_product(db: sqlite3.Connection, product_id: str) -> dict[str, Any]:
    """A product and what of it is in stock."""
    row = db.execute("SELECT * FROM products WHERE product_id = ?", (product_id,)).fetchone()
    if row is None:
        raise Refusal(f"No such product: {product_id}.")
    variants = [
        {"variant_id": v["variant_id"], "options": v["options"], "price": v["price"] / 100, "stock": v["stock"]}
        for v in db.execute("SELECT * FROM variants WHERE product_id = ? ORDER BY rowid", (product_id,))
    ]
    return {"product_id": product_id, "name": row["name"], "final_sale": bool(row["final_sale"]), "variants": variants}


@tool(
    "read",
    "Check whether the return policy allows an item to be returned or exchanged.",
    ["order_id", "item_id"],
    order_id=_ORDER,
    item_id=_ITEM,
)
def check_return_policy(db: sqlite3.Connection, order_id: str, item_id: str) -> dict[str, Any]:
    """Delivered not more than 30 days ago, and no final sale."""
    order, item = _order(db, order_id), _item(db, order_id, item_id)
    if order["delivered_on"] is None:
        verdict, reason = False, "The order has not been delivered."
    elif item["final_sale"]:
        verdict, reason = False, "Final sale items cannot be returned."
    else:
        age = (date.fromisoformat(today()) - date.fromisoformat(order["delivered_on"])).days
        verdict = age <= RETURN_DAYS
        reason = f"Delivered {age} days ago; the window is {RETURN_DAYS} days."
    return {"order_id": order_id, "item_id": item_id, "eligible": verdict, "reason": reason}


@tool("read", "Track the shipment of an order at the carrier.", ["order_id"], order_id=_ORDER)
def track_shipment(db: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    """Where the parcel is."""
    order = _order(db, order_id)
    if order["carrier_status"] is None:
        raise Refusal("The order has not been handed to the carrier.")
    return {
        "order_id": order_id,
        "carrier_status": order["carrier_status"],
        "last_scan": order["last_scan"],
        "promised_by": order["promised_by"],
    }


# Writing -----------------------------------------------------------------------------------------------------


@tool(
    "irreversible",
    "Cancel an order that has not been shipped yet.",
    ["order_id", "reason"],
    order_id=_ORDER,
    reason={**STRING, "description": "Why, in a few words"},
)
def cancel_order(db: sqlite3.Connection, order_id: str, reason: str) -> dict[str, Any]:
    """Stop an order; the money is not returned by this."""
    order = _order(db, order_id)
    if order["status"] != "processing":
        raise Refusal(f"Order {order_id} is {order['status']} and cannot be cancelled.")
    db.execute("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", (order_id,))
    return {"order_id": order_id, "status": "cancelled"}


@tool(
    "irreversible",
    "Refund money for an order, or for one item of it, to the original payment method.",
    ["order_id", "amount"],
    order_id=_ORDER,
    amount={"type": "number", "exclusiveMinimum": 0, "description": "Sum to pay back"},
    item_id=_ITEM,
)
def refund_order(db: sqlite3.Connection, order_id: str, amount: float, item_id: str | None = None) -> dict[str, Any]:
    """Pay back; what was paid for the whole order is the only limit."""
    order, items = _order(db, order_id), _items(db, order_id)
    if item_id is not None:
        _item(db, order_id, item_id)
    if order["payment"] == "invoice":
        raise Refusal(f"Order {order_id} is on invoice and has not been paid.")
    cents = round(amount * 100)
    paid = round(sum(item["price"] * item["quantity"] for item in items) * 100)
    back = db.execute("SELECT coalesce(sum(amount), 0) FROM refunds WHERE order_id = ?", (order_id,)).fetchone()[0]
    if cents < 1:
        raise Refusal("The sum is less than a cent.")
    if back + cents > paid:
        raise Refusal(f"Only {(paid - back) / 100:.2f} of order {order_id} can still be refunded.")
    db.execute("INSERT INTO refunds (order_id, item_id, amount) VALUES (?, ?, ?)", (order_id, item_id, cents))
    return {"order_id": order_id, "item_id": item_id, "refunded": cents / 100}


@tool(
    "write",
    "Change the delivery address of an order that has not been shipped yet.",
    ["order_id", "street", "city", "postal_code"],
    order_id=_ORDER,
    street={**STRING, "description": "Street and house number"},
    city=STRING,
    postal_code=STRING,
)
def change_address(db: sqlite3.Connection, order_id: str, street: str, city: str, postal_code: str) -> dict[str, Any]:
    """Send it elsewhere, while it is still here."""
    order = _order(db, order_id)
    if order["status"] != "processing":
        raise Refusal(f"Order {order_id} is {order['status']}; its address cannot be changed any more.")
    new = (street.strip(), city.strip(), postal_code.strip())
    db.execute("UPDATE orders SET street = ?, city = ?, postal_code = ? WHERE order_id = ?", (*new, order_id))
    return {"order_id": order_id, "address": dict(zip(("street", "city", "postal_code"), new, strict=True))}


@tool(
    "irreversible",
    "Exchange an item for another variant of the same product.",
    ["order_id", "item_id", "variant_id"],
    order_id=_ORDER,
    item_id=_ITEM,
    variant_id=_id("Number of the wanted variant", "P-10-M"),
)
def exchange_item(db: sqlite3.Connection, order_id: str, item_id: str, variant_id: str) -> dict[str, Any]:
    """Order the other variant in place of this one."""
    policy = check_return_policy(db, order_id, item_id)
    if not policy["eligible"]:
        raise Refusal(f"The item cannot be exchanged. {policy['reason']}")
    item = _item(db, order_id, item_id)
    if item["exchanged_for"]:
        raise Refusal(f"Item {item_id} was already exchanged.")
    wanted = db.execute("SELECT * FROM variants WHERE variant_id = ?", (variant_id,)).fetchone()
    if wanted is None or wanted["product_id"] != item["product_id"]:
        raise Refusal(f"{variant_id} is not a variant of {item['product_id']}.")
    if wanted["stock"] < item["quantity"]:
        raise Refusal(f"{variant_id} is out of stock.")
    db.execute("UPDATE variants SET stock = stock - ? WHERE variant_id = ?", (item["quantity"], variant_id))
    db.execute("UPDATE items SET exchanged_for = ? WHERE item_id = ?", (variant_id, item_id))
    return {"item_id": item_id, "exchanged_for": variant_id}


@tool(
    "write",
    "Create a prepaid return label for a delivered item.",
    ["order_id", "item_id"],
    order_id=_ORDER,
    item_id=_ITEM,
)
def create_return_label(db: sqlite3.Connection, order_id: str, item_id: str) -> dict[str, Any]:
    """A label to send the item back with."""
    order, _ = _order(db, order_id), _item(db, order_id, item_id)
    if order["delivered_on"] is None:
        raise Refusal("The order has not been delivered.")
    if db.execute("SELECT 1 FROM labels WHERE item_id = ?", (item_id,)).fetchone():
        raise Refusal(f"There is a label for {item_id} already.")
    db.execute("INSERT INTO labels VALUES (?)", (item_id,))
    return {"item_id": item_id, "label": f"RL-{item_id[2:]}"}


@tool(
    "write",
    "Open a claim with the carrier for a lost, missing or damaged parcel.",
    ["order_id", "kind"],
    order_id=_ORDER,
    kind={"type": "string", "enum": ["lost", "missing", "damaged"], "description": "What happened"},
)
def open_claim(db: sqlite3.Connection, order_id: str, kind: str) -> dict[str, Any]:
    """Tell the carrier; needed before anything is sent again."""
    order = _order(db, order_id)
    if order["carrier_status"] is None:
        raise Refusal("The order has not been handed to the carrier.")
    if db.execute("SELECT 1 FROM claims WHERE order_id = ?", (order_id,)).fetchone():
        raise Refusal(f"There is a claim for {order_id} already.")
    db.execute("INSERT INTO claims VALUES (?, ?)", (order_id, kind))
    return {"order_id": order_id, "claim": f"CL-{order_id[2:]}", "kind": kind}


@tool(
    "irreversible",
    "Send a replacement for an item that was lost or arrived damaged.",
    ["order_id", "item_id"],
    order_id=_ORDER,
    item_id=_ITEM,
)
def send_replacement(db: sqlite3.Connection, order_id: str, item_id: str) -> dict[str, Any]:
    """Send the same thing again; every call sends one more."""
    item = _item(db, order_id, item_id)
    if not db.execute("SELECT 1 FROM claims WHERE order_id = ?", (order_id,)).fetchone():
        raise Refusal("Open a claim with the carrier first.")
    stock = db.execute("SELECT stock FROM variants WHERE variant_id = ?", (item["variant_id"],)).fetchone()[0]
    if stock < item["quantity"]:
        raise Refusal(f"{item['variant_id']} is out of stock.")
    db.execute("UPDATE variants SET stock = stock - ? WHERE variant_id = ?", (item["quantity"], item["variant_id"]))
    cursor = db.execute("INSERT INTO replacements (item_id) VALUES (?)", (item_id,))
    return {"item_id": item_id, "replacement": f"RP-{cursor.lastrowid}"}


@tool(
    "write",
    "Send the customer a message by email to confirm what was done.",
    ["customer_id", "text"],
    customer_id=_CUSTOMER,
    text={**STRING, "description": "What the customer reads"},
)
def send_message(db: sqlite3.Connection, customer_id: str, text: str) -> dict[str, Any]:
    """Write to the customer."""
    _customer(db, customer_id)
    db.execute("INSERT INTO letters (customer_id, body) VALUES (?, ?)", (customer_id, text))
    return {"customer_id": customer_id, "sent": True}


@tool(
    "irreversible",
    "Escalate an order to the dispatch team, who look into it by hand.",
    ["order_id", "reason"],
    order_id=_ORDER,
    reason={**STRING, "description": "What they should do"},
)
def escalate(db: sqlite3.Connection, order_id: str, reason: str) -> dict[str, Any]:
    """Hand it over to people."""
    _order(db, order_id)
    db.execute("INSERT INTO escalations (order_id, reason) VALUES (?, ?)", (order_id, reason))
    return {"order_id": order_id, "escalated": True}


# Looking up --------------------------------------------------------------------------------------------------


def _customer(db: sqlite3.Connection, customer_id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM customers WHERE customer_id = ?", (customer_id,)).fetchone()
    if row is None:
        raise Refusal(f"No such customer: {customer_id}.")
    return row


def _order(db: sqlite3.Connection, order_id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM orders WHERE order_id = ?", (order_id,)).fetchone()
    if row is None:
        hint = "" if re.fullmatch(r"W-\d{5}", order_id) else " Order numbers look like W-20000."
        raise Refusal(f"No such order: {order_id}.{hint}")
    return row


def _items(db: sqlite3.Connection, order_id: str) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT i.item_id, p.name AS product, p.product_id, i.variant_id, v.options, v.price / 100.0 AS price,"
        " i.quantity, i.exchanged_for FROM items i JOIN variants v USING (variant_id)"
        " JOIN products p USING (product_id) WHERE i.order_id = ? ORDER BY i.item_id",
        (order_id,),
    )
    return [dict(row) for row in rows]


def _item(db: sqlite3.Connection, order_id: str, item_id: str) -> sqlite3.Row:
    row = db.execute(
        "SELECT i.*, v.product_id, p.final_sale FROM items i JOIN variants v USING (variant_id)"
        " JOIN products p USING (product_id) WHERE i.order_id = ? AND i.item_id = ?",
        (order_id, item_id),
    ).fetchone()
    if row is None:
        raise Refusal(f"Order {order_id} has no item {item_id}.")
    return row
