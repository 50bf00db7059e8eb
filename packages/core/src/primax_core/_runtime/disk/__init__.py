"""Cache of executables on disk, for later processes.

- ``folder``: the folder, and the checks of its owner and permissions;
- ``files``: the format of a file and its checks;
- ``store``: reading, writing and evicting files, concurrently with other processes;
- ``keys``: everything that an executable depends on;
- ``writer``: the background thread that writes;
- ``executables``: serialization of jaxlib's executables.

An error here never fails a program: it compiles as if there were no cache.
"""
