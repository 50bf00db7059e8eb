"""Pytrees, configuration, errors and source information: what every other floor stands on."""
