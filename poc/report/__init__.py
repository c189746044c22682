"""The report: one self-contained HTML file from stored results, and the figures that pages share with it."""

from poc.report import plots
from poc.report.build import build_report

__all__ = ["build_report", "plots"]
