"""The far side of the sandbox: a process that forks one contained child per program.

It is run as ``python -I -S -c`` with an empty environment, so everything here imports the standard library
and its own siblings only, never assay. It sees neither programs nor what they print: their payload, input and output pass
through descriptors that it hands on, so that nothing of one run can be found in the memory of the next.
"""

__all__: list[str] = []
