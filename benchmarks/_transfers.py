"""Copies between host and accelerator, counted with the CPU posing as one (`tests/stand_in_device.py`), as a table."""

import numpy as np

#: Methods as they are counted, and what is counted about.
METHODS = {
    "rise(masks=150)": "an image, all targets",
    "lime(samples=150)": "an image, all targets",
    "occlusion": "an image, all targets",
    "input_x_gradient": "a chunk of images",
    "integrated_gradients(steps=5)": "a chunk of images, all targets",
    "grad_cam": "a chunk of images",
    "smoothgrad(samples=4)": "a chunk of images, 4 samples",
}


def table() -> str:
    """The section of the page."""
    from tests.stand_in_device import asked, copies, there

    images = np.random.default_rng(0).random((3, 64, 64, 3), np.float32)
    rows = ["| method | for | to the device | back |", "|---|---|---|---|"]
    for spec, about in METHODS.items():
        out, back, _ = copies(lambda spec=spec: asked(spec, there(), images))  # type: ignore[misc]
        rows.append(f"| {spec.partition('(')[0]} | {about} | {out} | {back} |")
    out, back, _ = copies(lambda: there().logits(images))
    rows.append(f"| logits | a chunk of images | {out} | {back} |")
    words = (
        "## Accelerators\n\nThere is none here: the CPU posed as one and copies were counted. Masks of RISE and samples of"
        " LIME are made and multiplied on the device. The noise of SmoothGrad is drawn by the host, sample by sample; RISE"
        " with `stop` brings its standard error home every 200 masks. A chunk is 8 images on a CPU and 64 on an accelerator."
    )
    return words + "\n\n" + "\n".join(rows)
