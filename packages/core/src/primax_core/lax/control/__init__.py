"""Control flow: conditionals and loops as primitives that hold programs."""
