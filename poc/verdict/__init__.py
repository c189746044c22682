"""From stored trials to a verdict: every figure (`compare`) and the decision by frozen thresholds (`decide`)."""

from poc.verdict.advice import sampling_sentences
from poc.verdict.compare import compare
from poc.verdict.criteria import Criterion
from poc.verdict.decide import Verdict, decide, exit_code, load_verdict, speak
from poc.verdict.numbers import (
    ArmSummary,
    Bounds,
    CategoryRow,
    Comparison,
    Contrast,
    Fidelity,
    Measure,
    Split,
    TokenSplit,
)

__all__ = [
    "ArmSummary",
    "Bounds",
    "CategoryRow",
    "Comparison",
    "Contrast",
    "Criterion",
    "Fidelity",
    "Measure",
    "Split",
    "TokenSplit",
    "Verdict",
    "compare",
    "decide",
    "exit_code",
    "load_verdict",
    "sampling_sentences",
    "speak",
]
