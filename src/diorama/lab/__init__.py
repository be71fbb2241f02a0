"""The lab: remove a part, drag the lamp, and watch logits, explanations and truth change.

`diorama lab birds -M birds_cnn -m grad_cam` serves it as a page; `diorama.lab("birds", model=net, methods=["grad_cam"])`
shows it in a notebook: this package is callable, since the function has the same name.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """The class of this package, which makes it callable."""

    def __call__(self, world: Any, model: Any = (), methods: Any = (), scene: Any = 0) -> Any:
        """The lab as a widget. `world`, `model` and `methods` are specs or live objects, `scene` is one or a number."""
        from diorama.lab.widget import show

        return show(world, model, methods, scene)


sys.modules[__name__].__class__ = _Callable
