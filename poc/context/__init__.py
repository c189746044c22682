"""What is added to a request: arms, their text, and where it goes. Used by replays and by live agents alike."""

from poc.context.arms import ARMS, Arm, arm
from poc.context.place import PLACEMENTS, Placement, can_place, place

__all__ = ["ARMS", "PLACEMENTS", "Arm", "Placement", "arm", "can_place", "place"]
