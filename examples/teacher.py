"""A teacher: what does a network look at? Remove a part, watch the prediction, and compare with an explanation.
=============================================================================================================

python examples/teacher.py     # writes lesson.png and answers.pdf
"""

import matplotlib.pyplot as plt
import numpy as np

import diorama

world = diorama.build("world", "birds").object
model = diorama.build("model", "birds_cnn").object
name, bird = world.scene_at(seed=0, index=4)

# Stage, do, look: one thing changes at a time, every other byte of the scene stays the same.
scenes = {"as it is": bird} | {f"without {part}": world.do(bird, **{part: None}) for part in world.part_names}
frames = world.render(list(scenes.values()))
label = frames[0].truth["label"]
logits = model.logits(np.stack([frame.srgb() for frame in frames]))[:, label]

figure, axes = plt.subplots(2, len(scenes), figsize=(2 * len(scenes), 4.2), layout="constrained")
for above, below, (what, frame, logit) in zip(*axes, zip(scenes, frames, logits, strict=True), strict=True):
    above.imshow(frame.srgb())
    above.set_title(f"{what}\nlogit {logit:.1f}", fontsize=9)
    below.imshow(np.abs(frame.srgb() - frames[0].srgb()).max(axis=2), cmap="gray", vmin=0, vmax=1)
    for axis in (above, below):
        axis.axis("off")
figure.savefig("lesson.png", dpi=80)
drops = {part: float(logits[0] - logits[i]) for i, part in enumerate(world.part_names, 1)}
print(
    f"{name}: the network uses the {max(drops, key=drops.__getitem__)} most", {k: round(v, 1) for k, v in drops.items()}
)

# Do two explanations agree with what really happened? A score of 1 is the true order of the parts, 0.5 is chance.
result = diorama.evaluate(
    {"Grad-CAM": "grad_cam", "raw gradient": "saliency"},
    model=model,
    on=world,
    by="single_deletion",
    cases=8,
    controls=True,
)
print(result)
result.plot.cases().savefig("answers.pdf")
