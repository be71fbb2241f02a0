"""Lets torchvision be imported beside a torch that its compiled operators were not built for.

The default wheel of torchvision then stops with "operator torchvision::nms does not exist" (pytorch/vision#9077, #9085).
Only the detection operators are compiled; models and transforms work once the missing operators have been declared.
"""

import importlib
import sys
from typing import Any

#: The operators that torchvision describes at import, compiled or not.
_SCHEMAS = {name: f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" for name in ("nms", "qnms")}
_declared: list[Any] = []  # a torch.library.Library undeclares its operators when it is collected


def make_importable() -> None:
    """Import torchvision, declaring its compiled operators first where they cannot be loaded; raises ImportError if absent.

    Call it before importing torchvision, timm or zennit. It changes nothing where torchvision works as it is.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        _forget()
        _declare()
        importlib.import_module("torchvision")


def _forget() -> None:
    """Drop what the failed import left behind."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
        del sys.modules[name]


def _declare() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _declared.append(library)
