"""A student of explainability: do my attribution maps find the parts that my network uses?
========================================================================================

python examples/xai_student.py     # half a minute; the network is small and untrained: replace it by yours
"""

import captum.attr
import torch

import diorama

torch.manual_seed(0)
layers = torch.nn.Conv2d(3, 16, 5, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten()
net = torch.nn.Sequential(*layers, torch.nn.Linear(256, 50))


def mine(model, x, target):
    """Gradient times input, by hand: x is (n, 3, h, w); the answer has that shape or (n, h, w)."""
    x.requires_grad_()
    score = model(x).gather(1, target[:, None]).sum()
    return torch.autograd.grad(score, x)[0] * x.detach()


result = diorama.evaluate(
    {"Gradient × input (mine)": mine, "IG": captum.attr.IntegratedGradients, "Grad-CAM": "grad_cam"},
    model={"my network": net},
    on="birds(size=64)",
    by="single_deletion",
    cases=8,
    controls=True,
)
print(result)  # in a notebook write `result` alone: table, verdicts, dose curve, worst cases
print(result.compare("IG", "Gradient × input (mine)"))

case = result.case("IG", 3)  # arrays: case.frame, case.truth["parts"], case.answer
inside = abs(case.answer).sum(axis=2)[case.truth["parts"] > 0].sum() / abs(case.answer).sum()
print(f"{inside:.0%} of the attribution of {case.case} lies on the bird")
case.show().savefig("case.png")
result.plot.methods().savefig("methods.pdf")
