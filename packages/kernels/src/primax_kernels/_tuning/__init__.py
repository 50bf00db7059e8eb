"""Choice of block sizes and compiler parameters by measurement."""
