"""jaxlib: clients, devices, arrays, executables. Only this layer and the lowering import it."""
