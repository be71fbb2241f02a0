"""Sampling explainers written as their papers describe them: one mask, one window, one rule at a time."""

import numpy as np
import torch


def rise(logit, image, cells, shifts, keep):
    """Petsiuk et al. 2018, Eq. 6, and the mask generator of its released code; also the error of the mean.

    `logit(image) -> float`; `cells` are the binary fields, `shifts` the rows and columns cut off.
    """
    from skimage.transform import resize

    height, width = image.shape[:2]
    samples = []
    for field, (down, right) in zip(cells, shifts, strict=True):
        grid = len(field)
        cell_h, cell_w = int(np.ceil(height / grid)), int(np.ceil(width / grid))
        size = (grid + 1) * cell_h, (grid + 1) * cell_w
        large = resize(field.astype(float), size, order=1, mode="reflect", anti_aliasing=False)
        mask = large[down : down + height, right : right + width]
        samples.append(logit((image * mask[:, :, None]).astype(np.float32)) * mask / keep)
    samples = np.array(samples)
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def occlusion(logit, image, window, stride, fill):
    """Zeiler & Fergus 2014: the drop of the logit, as the mean over the windows over each pixel."""
    height, width = image.shape[:2]
    total, count = np.zeros((height, width)), np.zeros((height, width))
    tops, lefts = ([*range(0, length - window, stride)] for length in (height, width))
    tops, lefts = [*tops, tops[-1] + stride], [*lefts, lefts[-1] + stride]
    for top in tops:
        for left in lefts:
            hidden = image.copy()
            hidden[top : top + window, left : left + window] = fill
            total[top : top + window, left : left + window] += logit(image) - logit(hidden)
            count[top : top + window, left : left + window] += 1
    return total / count


class Residual(torch.nn.Sequential):
    """A block whose output is added to its input."""

    def forward(self, x):
        """The sum."""
        return super().forward(x) + x


def relevance(layers, x, target, epsilon):
    """LRP as in the code of Arias-Duart et al. 2023: z^B first, then α1β0 in convolutions and ε in linear layers.

    Layers are convolutions, ReLUs, batch norms, average pools, linear ones (without biases) and residual blocks of them.
    Every rule written out with explicit Jacobians: R_i = Σ_j (share of i in j) · R_j.
    """
    first, *rest = layers
    a = first(x)
    logits = torch.nn.Sequential(*rest)(a)
    R = torch.zeros_like(logits)
    R[0, target] = logits[0, target]
    R = _handed_down(rest, a, R, epsilon)
    W = torch.autograd.functional.jacobian(first, x).reshape(-1, x.numel())
    low, high = x.min(), x.max()
    share = W * x.reshape(1, -1) - W.clamp(min=0) * low - W.clamp(max=0) * high
    return ((share / share.sum(1, keepdim=True)).T @ R.reshape(-1)).reshape(x.shape)


def _handed_down(layers, a, R, epsilon):
    """The relevance of a, given that of what the layers make of it."""
    inputs = [a]
    for layer in layers:
        inputs.append(layer(inputs[-1]))
    for layer, a in zip(reversed(layers), reversed(inputs[:-1]), strict=True):
        if isinstance(layer, Residual):
            inner = torch.nn.Sequential(*layer)(a)
            through = _handed_down([*layer], a, R * _ratio(inner, inner + a), epsilon)
            R = through + R * _ratio(a, inner + a)
        elif isinstance(layer, torch.nn.ReLU | torch.nn.Flatten):
            R = R.reshape(a.shape)
        elif isinstance(layer, torch.nn.BatchNorm2d):
            R = R * _taken_by_the_input(layer, a)
        else:
            R = _by_layer(layer, a, R, epsilon)
    return R


def _ratio(part, whole):
    return part / torch.where(whole == 0, torch.ones_like(whole), whole)


def _taken_by_the_input(layer, a):
    """y = w·x + b, channel by channel, pixel by pixel: the shift b counts with the sign of w·x."""
    share = torch.zeros_like(a)
    for index in np.ndindex(*a.shape):
        channel = index[1]
        w = layer.weight[channel] / (layer.running_var[channel] + layer.eps).sqrt()
        b = layer.bias[channel] - layer.running_mean[channel] * w
        z = float(w * a[index])
        share[index] = z / (z + abs(float(b)) * np.sign(z)) if z else 0.0
    return share


def _by_layer(layer, a, R, epsilon):
    W = torch.autograd.functional.jacobian(layer, a).reshape(-1, a.numel())
    share = W * a.reshape(1, -1)
    if isinstance(layer, torch.nn.Conv2d):
        share = share.clamp(min=0)
    z = share.sum(1, keepdim=True)
    if isinstance(layer, torch.nn.Linear):
        bottom = z + epsilon * z.square().mean().sqrt()
    else:
        bottom = torch.where(z == 0, torch.ones_like(z), z)
    return ((share / bottom).T @ R.reshape(-1)).reshape(a.shape)
