"""The reference's conventions for programs, traces and rules, over the door of the core."""
