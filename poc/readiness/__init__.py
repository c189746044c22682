"""Is this log good enough to judge anything, and what would make it better?"""

from poc.readiness.assess import Check, Readiness, assess, stored
from poc.readiness.speech import describe, headline

__all__ = ["Check", "Readiness", "assess", "describe", "headline", "stored"]
