"""Faults on demand for the simulated model's server: which request fails, and how.

A request asks for one with the header ``x-poc-fault: KIND`` (every time) or
``KIND*n`` (the first n times that this very request comes, so that a retry
gets through). A server can also be given rates by kind. Draws depend on the
request's own bytes and on how often they came, never on the order among
requests, so that a run with faults can be made again. Knows no HTTP.
"""

from __future__ import annotations

import hashlib
import random
from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal, get_args

from poc.errors import InputError, did_you_mean

FaultKind = Literal["429", "500", "401", "timeout", "cut", "malformed", "bad_arguments"]
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
_REMEMBERED = 100_000


class Faults:
    """Decides for each request whether it fails. Not thread-safe: belongs to one event loop."""

    def __init__(self, rates: Mapping[str, float] | None = None, seed: int = 0) -> None:
        """rates: probability by kind, together at most 1. Raises `InputError` for other kinds or sums."""
        rates = dict(rates or {})
        for kind, rate in rates.items():
            known_kind(kind)
            if not 0.0 <= rate <= 1.0:
                raise InputError(f"The rate of the fault '{kind}' must lie between 0 and 1, not {rate}.", where=kind)
        if sum(rates.values()) > 1.0:
            raise InputError("The rates of all faults together exceed 1.")
        self.rates, self.seed = rates, seed
        self._seen: OrderedDict[bytes, int] = OrderedDict()

    def draw(self, body: bytes, wish: str | None = None) -> FaultKind | None:
        """The fault of this request, if any. wish: the header's value. Raises `InputError` for a wish of no kind."""
        digest = hashlib.sha256(body).digest()
        nth = self._seen.pop(digest, 0)
        self._seen[digest] = nth + 1
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if wish:
            name, _, times = wish.partition("*")
            kind = known_kind(name.strip())
            if times and not times.strip().isdigit():
                raise InputError(f"'{times}' is no number of times for a fault.", where=wish)
            return kind if not times or nth < int(times) else None
        if not self.rates:
            return None
        place = random.Random(f"{self.seed}:{digest.hex()}:{nth}").random()
        for kind, rate in sorted(self.rates.items()):
            if place < rate:
                return known_kind(kind)
            place -= rate
        return None


def known_kind(name: str) -> FaultKind:
    """The kind of this name. Raises `InputError` for any other."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise InputError(f"There is no fault '{name}'.{did_you_mean(name, KINDS)}", where="x-poc-fault")
