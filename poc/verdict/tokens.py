"""Where a change of tokens per trial comes from: the added text, more turns, or longer turns.

With mean tokens per trial T = C + K * L (C tokens of the added context text,
K turns, L other tokens per turn) in each arm, the change is split exactly:

- context: C1 - C0
- turns:   (K1 - K0) * (L1 + L0) / 2
- length:  (L1 - L0) * (K1 + K0) / 2

The two-factor part is the symmetric decomposition of Kitagawa (1955),
"Components of a difference between two rates", J. Am. Stat. Assoc.
50:1168-1194: no interaction is left over. Turn for turn a longer history is
sent again, so more turns also make turns longer; that shows under length.
The added text is counted locally (an estimate) while T is what the API
reported, so a miscount of C moves tokens between context and length, never
the total. Means are arithmetic, over task means, each task weighing the same;
the ratio in the comparison is one of geometric means, so the two need not agree
to the last percent.
"""

from __future__ import annotations

from poc.verdict.numbers import TokenSplit
from poc.verdict.trials import Pairs, Trial, mean, task_means


def split(pairs: Pairs) -> TokenSplit | None:
    """The split over the paired tasks with known usage; None when there is none."""

    def where_known(value: int, trial: Trial) -> float | None:
        return None if trial.tokens is None else float(value)

    # A unit lacking usage in either arm drops out of all three alike, so that the parts fit the total.
    total = task_means(pairs, lambda trial: None if trial.tokens is None else float(trial.tokens))
    context = task_means(pairs, lambda trial: where_known(trial.context_tokens, trial))
    turns = task_means(pairs, lambda trial: where_known(trial.turns, trial))
    t1, t0 = mean(total[0]), mean(total[1])
    c1, c0 = mean(context[0]), mean(context[1])
    k1, k0 = mean(turns[0]), mean(turns[1])
    if t1 is None or t0 is None or c1 is None or c0 is None or not k1 or not k0:
        return None
    l1, l0 = (t1 - c1) / k1, (t0 - c0) / k0
    return TokenSplit(
        tasks=len(total[0]),
        control=t0,
        total=t1 - t0,
        context=c1 - c0,
        turns=(k1 - k0) * (l1 + l0) / 2,
        length=(l1 - l0) * (k1 + k0) / 2,
    )
