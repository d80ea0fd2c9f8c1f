"""Prints lower ends of confseq 0.0.11 for the scores of TestSequenceIsThatOfConfseq.

    pip download --no-deps confseq==0.0.11 && tar xf confseq-0.0.11.tar.gz
    PYTHONPATH=confseq-0.0.11/src python3 internal/ledger/testdata/golden.py

Only its Python files and numpy are used: what they import beside those is not called here.
"""
import sys
from unittest import mock

import numpy as np

np.float_ = np.float64  # until numpy 2
for name in ("scipy", "scipy.optimize", "multiprocess", "confseq.boundaries"):
    sys.modules.setdefault(name, mock.MagicMock())
from confseq.predmix import predmix_empbern_lower_cs

t = np.arange(1, 5001)
for kind, x in (
    ("bounded", (t * 7919 % 1000) / 1000),
    ("rare", (t * 7919 % 1000 < 30) * 1.0),
    ("heavy", (t * 7919 % 1000 < 30) * 9.5 + (t * 104729 % 100) / 400),
    ("constant", t * 0 + 0.25),
):
    for alpha in (0.05, 0.001):
        low = predmix_empbern_lower_cs(x, alpha=alpha, truncate_mean=True)
        for n in (1, 2, 10, 100, 1000, 5000):
            print(f'{{"{kind}", {alpha}, {n}, {low[n - 1]:.17g}}},')
