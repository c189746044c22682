"""Intervals, paired tests and power: numbers in, numbers out. Knows no tables."""

from poc.stats.auroc import auroc
from poc.stats.interval import Interval
from poc.stats.means import mean_difference, ratio_of_geometric_means
from poc.stats.paired import TestResult, holm, mcnemar_exact, sign_flip_test
from poc.stats.power import (
    TYPICAL,
    Variance,
    detectable_difference,
    power_of,
    tasks_needed,
    variance_of_rates,
    variance_of_runs,
)
from poc.stats.proportions import clopper_pearson, wilson

__all__ = [
    "TYPICAL",
    "Interval",
    "TestResult",
    "Variance",
    "auroc",
    "clopper_pearson",
    "detectable_difference",
    "holm",
    "mcnemar_exact",
    "mean_difference",
    "power_of",
    "ratio_of_geometric_means",
    "sign_flip_test",
    "tasks_needed",
    "variance_of_rates",
    "variance_of_runs",
    "wilson",
]
