"""Examples of native functions: a C++ file and a Python file each. See docs/native_examples.md."""
