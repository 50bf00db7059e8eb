"""Taylor mode: its interpreter, its rules for the core's primitives, and ``jet``."""
