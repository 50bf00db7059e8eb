"""Compiled programs kept on disk, so that later processes need not compile them again.

- ``folder``: where they lie, and whether that place can be trusted;
- ``files``: what a file holds and how it is checked;
- ``store``: reading, writing and evicting files while other processes do the same;
- ``keys``: what a compiled program depends on;
- ``writer``: the thread that writes while the program goes on;
- ``executables``: jaxlib's executables in and out.

Whatever goes wrong here makes a program compile as if there were no such folder, never fail.
"""
