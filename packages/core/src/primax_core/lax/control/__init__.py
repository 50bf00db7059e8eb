"""Control flow: conditionals and loops as call primitives."""
