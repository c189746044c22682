"""The only door to a model: settings, client, budget, and where requests go.

Imports of the SDK are late, so that importing this room is cheap.
"""

from poc.models.budget import Budget, Reservation, Spent
from poc.models.client import ModelClient
from poc.models.egress import Destination, destination
from poc.models.failures import CallFailed
from poc.models.settings import ModelSettings
from poc.models.turn import ToolCall, Turn

__all__ = [
    "Budget",
    "CallFailed",
    "Destination",
    "ModelClient",
    "ModelSettings",
    "Reservation",
    "Spent",
    "ToolCall",
    "Turn",
    "destination",
]
