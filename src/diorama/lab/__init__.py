"""The lab: take a part away, drag the lamp, and watch logits, explanations and truth move.

`diorama lab birds -M birds_cnn -m grad_cam` serves it as a page; `diorama.lab("birds", model=net, methods=["grad_cam"])`
shows the same in a notebook. The package itself can be called, because both are named alike.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """The package, which shows the lab in a notebook when it is called."""

    def __call__(self, world: Any, model: Any = (), methods: Any = (), scene: Any = 0) -> Any:
        """The lab as a widget. `world`, `model` and `methods` are specs or live objects, `scene` is one or a number."""
        from diorama.lab.widget import show

        return show(world, model, methods, scene)


sys.modules[__name__].__class__ = _Callable
