"""primax-distributed: several devices and processes."""
