"""Commands: ``python -m primax_ffi new mykernels``."""

from ._new_project import main

if __name__ == "__main__":
    main()
