"""Weft: a query planner for distributed deep learning.

    import weft

    plan = weft.plan("gpt2", "dgx_h100", b=64, precision="bf16")
    print(plan.parallelism, plan.step_seconds)
    print(plan.to("megatron"))

    with weft.connect() as session:
        session.execute("SHOW CLUSTERS").to_pandas()

docs/python.md is the guide. `python -m weft` runs the weft program, and `python -m weft.export`
converts PyTorch models to WeftQL.
"""

from . import _library
from ._call import SearchProgress, TrainProgress
from ._errors import Error
from ._plan import Configuration, Plan
from ._session import Session, connect, plan
from ._tensor import Tensor, Weights
from ._values import Rows

__all__ = ["Configuration", "Error", "Plan", "Rows", "SearchProgress", "Session", "Tensor", "TrainProgress",
           "Weights", "__version__", "connect", "plan"]

for _name in __all__:
    if _name[0] != "_":
        globals()[_name].__module__ = "weft"  # as users write it
del _name

# A wheel with the library fails here if it cannot be used. In a source tree the library may not be
# built: weft.export does without it.
if _library.wheel():
    _library.library()


def __getattr__(name: str) -> str:
    if name == "__version__":
        return _library.library().weft_version().decode()
    raise AttributeError(f"module 'weft' has no attribute '{name}'")
