"""jaxlib: clients, devices, arrays, executables. Only this floor and the lowering import it."""
