"""``explain``: the operations of a function, their cost, and the results of compilation."""
