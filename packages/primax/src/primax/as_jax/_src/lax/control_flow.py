"""Loops and conditionals."""

from primax_core.lax import (
    associative_scan as associative_scan,
    cond as cond,
    cond_p as cond_p,
    fori_loop as fori_loop,
    map as map,
    scan as scan,
    scan_p as scan_p,
    switch as switch,
    while_loop as while_loop,
    while_p as while_p,
)
