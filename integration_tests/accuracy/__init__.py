"""Errors of elementary and special functions, measured in ulp against mpmath.

- `cases`: the functions, their exact values and the ranges of their arguments
- `points`: random arguments
- `measure`: errors in units in the last place
- `report`: the table, and the recorded bounds of ``bounds.json``

``nox -s accuracy`` tries many arguments and fails if an error exceeds its bound; ``-- --write``
brings the table in ``docs/accuracy.md`` up to date, ``-- --record`` raises bounds that are
exceeded. ``test_accuracy.py`` tries a few arguments of each function.
"""
