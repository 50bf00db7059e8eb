"""Public transformations: argument handling for each of the mechanisms below."""
