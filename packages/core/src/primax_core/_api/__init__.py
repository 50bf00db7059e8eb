"""The transformations as users call them: argument handling around one mechanism each."""
