"""Tables between two markers of a page in the documentation."""

from __future__ import annotations


def put_between(page: str, table: str, begin: str, end: str) -> str:
    """Replace the text between the two markers of the page by ``table``.

    Raises:
      ValueError: if the page does not contain each marker once, in order.
    """
    before, opening, rest = page.partition(begin)
    _, closing, after = rest.partition(end)
    if not opening or not closing or begin in after or end in after:
        raise ValueError(
            f"the page has no place for the table: {begin} and {end}, once each, in this order"
        )
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"
