"""Call primitives, custom rules, rematerialization, discharge and the jit cache."""
