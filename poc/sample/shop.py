"""The state of the sample world: a small SQL database of an online shop, and what changed in it.

The shop of ``data/world/shop.yaml`` is built once into an SQLite snapshot;
every trial gets a copy of its own in memory (well under a millisecond).
`facts` says in plain lines what a trial changed, which is what tasks are
judged by. Knows no tool and no task.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from functools import cache

from poc.sample.files import load_yaml

SCHEMA = """
CREATE TABLE products (product_id TEXT PRIMARY KEY, name TEXT NOT NULL, final_sale INTEGER NOT NULL);
CREATE TABLE variants (variant_id TEXT PRIMARY KEY, product_id TEXT NOT NULL, options TEXT NOT NULL,
                       price INTEGER NOT NULL, stock INTEGER NOT NULL);
CREATE TABLE customers (customer_id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL);
CREATE TABLE orders (order_id TEXT PRIMARY KEY, customer_id TEXT NOT NULL, status TEXT NOT NULL,
                     payment TEXT NOT NULL, placed_on TEXT NOT NULL, promised_by TEXT NOT NULL, delivered_on TEXT,
                     street TEXT NOT NULL, city TEXT NOT NULL, postal_code TEXT NOT NULL,
                     carrier_status TEXT, last_scan TEXT);
CREATE TABLE items (item_id TEXT PRIMARY KEY, order_id TEXT NOT NULL, variant_id TEXT NOT NULL,
                    quantity INTEGER NOT NULL, exchanged_for TEXT);
CREATE TABLE labels (item_id TEXT PRIMARY KEY);
CREATE TABLE refunds (refund_id INTEGER PRIMARY KEY, order_id TEXT NOT NULL, item_id TEXT, amount INTEGER NOT NULL);
CREATE TABLE claims (order_id TEXT PRIMARY KEY, kind TEXT NOT NULL);
CREATE TABLE replacements (replacement_id INTEGER PRIMARY KEY, item_id TEXT NOT NULL);
CREATE TABLE escalations (escalation_id INTEGER PRIMARY KEY, order_id TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE letters (letter_id INTEGER PRIMARY KEY, customer_id TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX orders_of ON orders (customer_id);
CREATE INDEX items_of ON items (order_id);
"""

# One line a changed thing. The shop starts with every order unexchanged and no refund, claim and so on.
_FACTS = """
SELECT 'status ' || o.order_id || ' ' || o.status FROM orders o JOIN seed.orders s USING (order_id)
    WHERE o.status <> s.status
UNION ALL SELECT 'address ' || o.order_id || ' ' || o.street || '|' || o.city || '|' || o.postal_code
    FROM orders o JOIN seed.orders s USING (order_id)
    WHERE (o.street, o.city, o.postal_code) <> (s.street, s.city, s.postal_code)
UNION ALL SELECT 'exchange ' || item_id || ' ' || exchanged_for FROM items WHERE exchanged_for IS NOT NULL
UNION ALL SELECT 'label ' || item_id FROM labels
UNION ALL SELECT 'refund ' || coalesce(item_id, order_id) || ' ' || printf('%.2f', amount / 100.0) FROM refunds
UNION ALL SELECT 'claim ' || order_id || ' ' || kind FROM claims
UNION ALL SELECT 'replacement ' || item_id FROM replacements
UNION ALL SELECT 'escalation ' || order_id FROM escalations
UNION ALL SELECT DISTINCT 'message ' || customer_id FROM letters
"""


def today() -> str:
    """The date on which the world stands still, ISO."""
    return str(load_yaml("world/shop.yaml")["today"])


@cache
def _snapshot() -> bytes:
    shop = load_yaml("world/shop.yaml")
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    for product_id, (name, final_sale, variants) in shop["products"].items():
        connection.execute("INSERT INTO products VALUES (?, ?, ?)", (product_id, name, int(final_sale)))
        for variant_id, options, price, stock in variants:
            row = (variant_id, product_id, str(options), price, stock)
            connection.execute("INSERT INTO variants VALUES (?, ?, ?, ?, ?)", row)
    for customer_id, (name, email) in shop["customers"].items():
        connection.execute("INSERT INTO customers VALUES (?, ?, ?)", (customer_id, name, email))
    for order_id, order in shop["orders"].items():
        customer, status, payment, placed, promised, delivered, address, items, carrier, scan = order
        dates = [None if date is None else str(date) for date in (placed, promised, delivered)]
        connection.execute(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (order_id, customer, status, payment, *dates, *address.split("|"), carrier, scan and str(scan)),
        )
        for number, (variant_id, quantity) in enumerate(items, start=1):
            row = (f"{order_id}-{number}", order_id, variant_id, quantity)
            connection.execute("INSERT INTO items VALUES (?, ?, ?, ?, NULL)", row)
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


def open_shop() -> sqlite3.Connection:
    """A fresh copy of the shop in memory, in autocommit mode, with rows by name."""
    # A trial's calls may come from another thread than its reset.
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_snapshot())
    connection.row_factory = sqlite3.Row
    return connection


def facts(connection: sqlite3.Connection) -> Counter[str]:
    """What differs from the shop's first state, one line a thing, with how often it stands there.

    Two refunds of the same sum are two facts; any number of messages to one
    customer is one, since saying it twice changes nothing.
    """
    connection.execute("ATTACH ':memory:' AS seed")
    try:
        connection.deserialize(_snapshot(), name="seed")
        return Counter(row[0] for row in connection.execute(_FACTS))
    finally:
        connection.execute("DETACH seed")
