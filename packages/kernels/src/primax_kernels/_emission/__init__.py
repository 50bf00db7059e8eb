"""Facts about kernels and elements that the emitters for GPUs and TPUs share."""
