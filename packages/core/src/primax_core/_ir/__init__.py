"""The intermediate representation: avals, primitives and their rules, jaxprs."""
