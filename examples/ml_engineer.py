"""An engineer: a gate for a pipeline. Is the new network as good as the old, and are its explanations still faithful?
===================================================================================================================

python examples/ml_engineer.py     # exits with 1 if not; a second call computes nothing again
"""

import sys

import torch

import diorama

MODELS = {"released": "birds_cnn", "candidate": diorama.build("model", "birds_cnn").object.module}

with torch.no_grad():  # prune the candidate: set the smallest fifth of each layer's weights to zero
    for layer in MODELS["candidate"].modules():
        if isinstance(layer, torch.nn.Conv2d):
            layer.weight *= layer.weight.abs() > layer.weight.abs().flatten().kthvalue(layer.weight.numel() // 5).values

result = diorama.evaluate(
    ["grad_cam", "input_x_gradient"],
    model=MODELS,
    on="birds",
    by=["accuracy", "single_deletion"],
    cases=8,
    out="gate",  # a folder: the same call resumes where it was stopped
    progress=False,
)
means = result.table.pivot_table(index="model", columns=["metric", "method"], values="mean", dropna=False)
accuracy, faithful = means["accuracy"].max(axis=1), means["sd", "grad_cam"]
for name in MODELS:
    print(f"{name:10} accuracy {accuracy[name]:.3f}, Grad-CAM follows the parts that matter to {faithful[name]:.3f}")

failed = result.rows[result.rows["status"] == "error"]
good = accuracy["candidate"] >= accuracy["released"] - 0.1 and faithful["candidate"] >= faithful["released"] - 0.1
print("the gate is met" if good and failed.empty else "the gate is not met")
sys.exit(0 if good and failed.empty else 1)
