"""The account of a trace, which lives with the other readers (`gpuplan.inputs.account`)."""

from gpuplan.inputs.account import Account

__all__ = ["Account"]
