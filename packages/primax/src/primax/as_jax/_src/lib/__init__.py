"""Names that libraries import from the reference's private door to its compiled library."""
