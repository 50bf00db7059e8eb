// Functions that are compiled for AVX2 too; the loader chooses (GCC with glibc on x86-64).
#pragma once

#include <cstdint>  // defines __GLIBC__

// Sanitizers instrument the choice before they are ready.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PRIMAX_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define PRIMAX_CLONES
#endif
