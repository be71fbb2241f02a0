"""Passing many altered copies of one image through a model: what RISE, LIME and Occlusion share.

The same passes serve every class, so such methods implement `explain_targets(model, image, targets)`. The passes go through
`model.logits`, so that any classifier will do; for a network on an accelerator the copies are made and stay there. Batches
are a function of the method's parameters, the image's size and the device only, so that a map does not depend on the other
questions of a call.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from diorama.adapt.classifying import pass_module, place_of_module
from diorama.core import device
from diorama.core.answers import Answer
from diorama.core.contracts import ImageByImage
from diorama.io.digests import array_digest

#: Pixels in a batch, and the fewest and most images.
PIXELS, FEWEST, MOST = 800_000, 8, 50

#: The output that a map explains: the target's logit, its probability (softmax), or its logit minus the mean over classes.
Output = Literal["logit", "probability", "centred"]
#: What hidden pixels show: a gray, the image's mean colour, or the image blurred (Gauss, σ = a sixteenth of its side).
Fill = Literal["black", "mean", "blur"]


def pixels(image: np.ndarray) -> str:
    """A digest of an image's pixels, which seeds random numbers."""
    return array_digest(image)


class OncePerImage(ImageByImage):
    """An explainer whose passes are made once for every distinct image, whatever classes are asked about."""

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """The answers of `explain_targets`, in the order of the images given."""
        rows: dict[str, list[int]] = {}
        for i, image in enumerate(images):
            rows.setdefault(pixels(image), []).append(i)
        answer_at: dict[int, Answer] = {}
        for same in rows.values():
            wanted = sorted({int(targets[i]) for i in same})
            answers = dict(zip(wanted, self.explain_targets(model, images[same[0]], wanted), strict=True))
            answer_at.update({i: answers[int(targets[i])] for i in same})
        return [answer_at[i] for i in range(len(images))]


def batches(count: int, shape: tuple[int, ...]) -> Iterator[range]:
    """range(count) in pieces, each a batch of images (h, w).

    >>> [len(piece) for piece in batches(120, (128, 128))], [len(piece) for piece in batches(9, (448, 448))]
    ([48, 48, 24], [8, 1])
    """
    return pieces(count, min(max(PIXELS // (shape[0] * shape[1]), FEWEST), MOST))


def pieces(count: int, size: int) -> Iterator[range]:
    """range(count) in pieces of a size."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def filling(image: np.ndarray, fill: Fill) -> np.ndarray:
    """What hidden pixels of an image (h, w, 3) show instead, the same shape, float32.

    >>> filling(np.full((4, 4, 3), 0.25), "mean")[0, 0].tolist()
    [0.25, 0.25, 0.25]
    """
    if fill == "black":
        return np.zeros_like(image, np.float32)
    if fill == "mean":
        return np.broadcast_to(image.mean(axis=(0, 1)), image.shape).astype(np.float32)
    import cv2

    return cv2.GaussianBlur(image.astype(np.float32), (0, 0), max(image.shape[:2]) / 16)


class OnHost:
    """Makes altered copies and sums over them in numpy, for models of any kind, through `model.logits`."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def put(self, *arrays: np.ndarray) -> Sequence[Any]:
        """The arrays in the form in which this backend computes."""
        return arrays

    def get(self, *found: Any) -> Sequence[np.ndarray]:
        """The results as numpy arrays."""
        return found

    def integers(self, numbers: Any) -> Any:
        """Numbers that were `put`, as integers to index with."""
        return numbers

    def batches(self, count: int, shape: tuple[int, ...]) -> Iterator[range]:
        """range(count) in pieces; the images of a piece are one batch."""
        return batches(count, shape)

    def copies(self, image: Any, count: int) -> Any:
        """`count` copies of an image (h, w, 3), to be altered."""
        return np.repeat(image[None], count, axis=0)

    def masked(self, image: Any, masks: Any, instead: Any = None) -> Any:
        """An image (h, w, 3) times every mask (n, h, w), plus `instead` if it is given: (n, h, w, 3).

        Channels first in memory takes a fraction of the time: the innermost loop is over a row, not over three channels.
        """
        copies = masks[:, None] * np.ascontiguousarray(image.transpose(2, 0, 1))
        if instead is not None:
            copies += instead.transpose(2, 0, 1) if instead.ndim == 3 else instead.transpose(0, 3, 1, 2)
        return copies.transpose(0, 2, 3, 1)

    def outputs(self, images: Any, output: Output) -> Any:
        """The outputs (n, classes) for images (n, h, w, 3), float64."""
        logits = np.asarray(self.model.logits(images), np.float64)
        if output == "logit":
            return logits
        if output == "centred":
            return logits - logits.mean(axis=1, keepdims=True)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def join(self, parts: Sequence[Any]) -> Any:
        """The parts concatenated."""
        return np.concatenate(parts)

    def weighted_sum(self, values: Any, masks: Any) -> Any:
        """Σ_k values_k · masks_k of masks (n, h, w), summed in single precision and returned in double."""
        return np.tensordot(values.astype(np.float32), masks, 1).astype(np.float64)

    def total(self, masks: Any) -> Any:
        """Σ_k masks_k in double precision."""
        return masks.sum(axis=0, dtype=np.float64)

    def root(self, square: Any) -> Any:
        """The square root; of 0 where rounding made a square negative."""
        return np.sqrt(np.maximum(square, 0))


class OnDevice(OnHost):
    """Torch on the network's accelerator; only `put` and `get` transfer data, each once."""

    def __init__(self, model: Any, place: Any) -> None:
        import torch

        super().__init__(model)
        self.place, self.module = place, pass_module(model)
        self.double = torch.float32 if place.type == "mps" else torch.float64  # which has no double precision

    def put(self, *arrays: np.ndarray) -> Sequence[Any]:
        """Tensors on the device, in single precision."""
        import torch

        flat = torch.from_numpy(np.concatenate([np.asarray(array, np.float32).ravel() for array in arrays]))
        sent = flat.to(self.place)
        ends = np.cumsum([array.size for array in arrays])
        return [sent[end - a.size : end].reshape(a.shape) for a, end in zip(arrays, ends, strict=True)]

    def get(self, *found: Any) -> Sequence[np.ndarray]:
        """Arrays on the host."""
        import torch

        flat = torch.cat([one.reshape(-1) for one in found]).cpu().numpy()
        sizes = [one.numel() for one in found]
        cut = np.split(flat, np.cumsum(sizes)[:-1])
        return [part.reshape(tuple(one.shape)) for part, one in zip(cut, found, strict=True)]

    def integers(self, numbers: Any) -> Any:
        """Numbers that were `put`, as integers to index with."""
        return numbers.long()

    def batches(self, count: int, shape: tuple[int, ...]) -> Iterator[range]:
        """range(count) in pieces of the device's batch size."""
        return pieces(count, device.chunk(self.place.type))

    def copies(self, image: Any, count: int) -> Any:
        """`count` copies of an image (h, w, 3), to be altered."""
        return image[None].repeat(count, 1, 1, 1)

    def masked(self, image: Any, masks: Any, instead: Any = None) -> Any:
        """An image (h, w, 3) times every mask (n, h, w), plus `instead` if it is given: (n, h, w, 3)."""
        copies = masks[:, :, :, None] * image
        return copies if instead is None else copies + instead

    def outputs(self, images: Any, output: Output) -> Any:
        """The outputs (n, classes) for images (n, h, w, 3)."""
        import torch

        with torch.no_grad():
            logits = self.module(images.permute(0, 3, 1, 2)).to(self.double)
        if output == "logit":
            return logits
        return logits - logits.mean(dim=1, keepdim=True) if output == "centred" else logits.softmax(dim=1)

    def join(self, parts: Sequence[Any]) -> Any:
        """The parts concatenated."""
        import torch

        return torch.cat(list(parts))

    def weighted_sum(self, values: Any, masks: Any) -> Any:
        """Σ_k values_k · masks_k."""
        import torch

        return torch.tensordot(values.float(), masks, 1).to(self.double)

    def total(self, masks: Any) -> Any:
        """Σ_k masks_k."""
        return masks.sum(dim=0, dtype=self.double)

    def root(self, square: Any) -> Any:
        """The square root; of 0 where rounding made a square negative."""
        return square.clamp(min=0).sqrt()


def backend_of(model: Any) -> OnHost:
    """The backend for a model: on its accelerator if it has one, else on the host."""
    if model.module is None:
        return OnHost(model)
    place = place_of_module(model.module)
    return OnHost(model) if place.type == "cpu" else OnDevice(model, place)


def all_outputs(
    backend: OnHost, shape: tuple[int, ...], count: int, altered: Callable[[range], Any], output: Output
) -> Any:
    """The outputs (count, classes) for `altered(piece)`, copies (n, h, w, 3) of an image made batch by batch."""
    return backend.join([backend.outputs(altered(piece), output) for piece in backend.batches(count, shape)])
