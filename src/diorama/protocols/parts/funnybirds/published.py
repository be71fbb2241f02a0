"""Table 2 of the FunnyBirds supplement (Hesse, Schaub-Meyer, Roth 2023): 24 rows, as printed, to two digits."""

from functools import cache

COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "com", "cor", "con", "mx")
_ROWS = """
VGG16 | IG | .99 .99 .92 .92 .92 .97 .67 .92 .95 .67 .92 .85
VGG16 | IG abs. | .99 .99 .96 .99 .97 .97 .69 .84 .97 .69 .84 .83
VGG16 | RISE | .99 .99 .8 .73 .7 .84 .73 .83 .79 .73 .83 .78
VGG16 | LIME | .99 .99 .89 .88 .9 .92 0 0 .91 0 0 .3
VGG16 | IxG | .99 .99 .79 .71 .69 .94 .55 .69 .84 .55 .69 .69
VGG16 | Grad-CAM | .99 .99 .94 .97 .93 .87 .75 .93 .91 .75 .93 .86
ResNet-50 | IG | 1 1 .92 .94 .88 .81 .59 .98 .86 .59 .98 .81
ResNet-50 | IG abs. | 1 1 .95 .97 .91 .79 .53 .86 .87 .53 .86 .75
ResNet-50 | RISE | 1 1 .82 .75 .74 .63 .56 .61 .7 .56 .61 .62
ResNet-50 | LIME | 1 1 .94 .94 .92 .78 0 0 .86 0 0 .29
ResNet-50 | IxG | 1 1 .74 .61 .53 .54 .54 .8 .58 .54 .8 .64
ResNet-50 | Grad-CAM | 1 1 .8 .74 .69 .74 .55 .78 .74 .55 .78 .69
ViT-B/16 | IG | .98 1 .89 .86 .85 .9 .65 .91 .88 .65 .91 .82
ViT-B/16 | IG abs. | .98 1 .96 .98 .95 .89 .63 .74 .92 .63 .74 .76
ViT-B/16 | RISE | .98 1 .79 .71 .7 .83 .79 .75 .78 .79 .75 .77
ViT-B/16 | LIME | .98 1 .95 .96 .96 .85 0 0 .9 0 0 .3
ViT-B/16 | IxG | .98 1 .74 .59 .6 .43 .51 .67 .54 .51 .67 .57
ViT-B/16 | Grad-CAM | .98 1 .75 .67 .68 .91 .7 .48 .81 .7 .48 .66
ViT-B/16 | Rollout | .98 1 .86 .8 .82 .8 .76 0 .81 .76 0 .52
ViT-B/16 | Chefer LRP | .98 1 .91 .92 .89 .9 .74 .95 .9 .74 .95 .86
BagNet | BagNet | 1 1 .95 .98 .91 .91 .76 .99 .93 .76 .99 .9
ResNet-50 | B-cos network | .96 .87 .93 .88 .94 .86 .69 .89 .89 .69 .89 .82
ResNet-50 | X-DNN | .99 1 .9 .88 .85 .93 .6 .87 .91 .6 .87 .79
ResNet-50 | ProtoPNet | .94 1 .93 .91 .92 .58 .24 .46 .75 .24 .46 .48
"""
#: Our names of the networks' families and of the methods.
_NETWORKS = {
    "vgg": "VGG16", "resnet": "ResNet-50", "vit": "ViT-B/16", "bagnet": "BagNet",
    "bcos": "ResNet-50", "xdnn": "ResNet-50", "protopnet": "ResNet-50",
}  # fmt: skip
_METHODS = {
    "integrated_gradients": "IG", "integrated_gradients_abs": "IG abs.", "rise": "RISE", "lime": "LIME",
    "input_x_gradient": "IxG", "grad_cam": "Grad-CAM", "rollout": "Rollout", "chefer": "Chefer LRP", "bagnet": "BagNet",
    "bcos": "B-cos network", "xdnn": "X-DNN", "prototypes": "ProtoPNet",
}  # fmt: skip


@cache
def table() -> dict[tuple[str, str], dict[str, float]]:
    """Every row by network and method.

    >>> table()["VGG16", "IG"]["mx"]
    0.85
    """
    lines = [line.split(" | ") for line in _ROWS.strip().splitlines()]
    return {(net, how): dict(zip(COLUMNS, map(float, values.split()), strict=True)) for net, how, values in lines}


def paper_row(model: str, method: str) -> dict[str, float] | None:
    """The row for the full-size network of a model's family, by our names; None where the paper has none.

    >>> paper_row("birds_vgg", "grad_cam")["sd"], paper_row("birds_cnn", "explain/rise")
    (0.75, None)
    """
    network = next((full for part, full in _NETWORKS.items() if part in model.lower()), "")
    return table().get((network, _METHODS.get(method.rpartition("/")[2], "")))
