"""The public names: type checkers read this file, and `__init__.py` reads from it which module has a name."""

from diorama import data as data
from diorama import lab as lab
from diorama import metrics as metrics
from diorama.api import evaluate as evaluate
from diorama.api import run as run
from diorama.core.answers import Boxes as Boxes
from diorama.core.answers import Code as Code
from diorama.core.answers import Heatmap as Heatmap
from diorama.core.answers import Layers as Layers
from diorama.core.answers import Mask as Mask
from diorama.core.answers import Sensitivity as Sensitivity
from diorama.core.bench import Bench as Bench
from diorama.core.capabilities import scene_at as scene_at
from diorama.core.cases import Case as Case
from diorama.core.cases import Panel as Panel
from diorama.core.cases import Score as Score
from diorama.core.catalogue import build as build
from diorama.core.contracts import Decomposer as Decomposer
from diorama.core.contracts import World as World
from diorama.core.errors import AnswerError as AnswerError
from diorama.core.errors import Excluded as Excluded
from diorama.core.errors import InputError as InputError
from diorama.core.errors import Undefined as Undefined
from diorama.core.frame import Frame as Frame
from diorama.core.guard import Note as Note
from diorama.core.plan import Plan as Plan
from diorama.core.rows import Row as Row
from diorama.core.scene import Scene as Scene
from diorama.core.scene import rng as rng
from diorama.data.look import look as look
from diorama.data.traverse import traverse as traverse
from diorama.data.views import world as world
from diorama.results import Results as Results
from diorama.testing.check import check_component as check_component
from diorama.training.tune import tune as tune

__version__: str
__all__: list[str]

def __dir__() -> list[str]: ...
