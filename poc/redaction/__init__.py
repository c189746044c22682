"""Takes secrets and personal data out of texts before they leave, and puts them back."""

from poc.redaction.redactor import Redactor
from poc.redaction.shapes import KINDS

__all__ = ["KINDS", "Redactor"]
