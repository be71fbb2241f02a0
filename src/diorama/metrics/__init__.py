"""Plain arrays in, a number with its 95 % interval out: `diorama.metrics.lmse(truth, estimate)`.

Every function here gives a `Measurement`: `value`, `interval`, `n`, and what goes with it. The formulas themselves are in
the modules of this package (`from diorama.metrics.lmse import lmse_barron`); they import nothing of ours.
"""

from diorama.metrics.public.codes import (
    beta_vae,
    cg,
    dci,
    explicitness,
    factor_table,
    factor_vae,
    infomec,
    irs,
    mig,
    modularity,
    sap,
    uc,
)
from diorama.metrics.public.concepts import csm, tcav
from diorama.metrics.public.explanations import (
    accuracy,
    background_independence,
    confusion,
    csdc,
    deletion,
    distractibility,
    mx,
    preservation,
    single_deletion,
    target_sensitivity,
)
from diorama.metrics.public.layers import invariance, lmse, psnr, saw_ap, si_mse, ssim, whdr
from diorama.metrics.public.measurement import Measurement

__all__ = [
    "Measurement",
    "accuracy",
    "background_independence",
    "beta_vae",
    "cg",
    "confusion",
    "csdc",
    "csm",
    "dci",
    "deletion",
    "distractibility",
    "explicitness",
    "factor_table",
    "factor_vae",
    "infomec",
    "invariance",
    "irs",
    "lmse",
    "mig",
    "modularity",
    "mx",
    "preservation",
    "psnr",
    "sap",
    "saw_ap",
    "si_mse",
    "single_deletion",
    "ssim",
    "target_sensitivity",
    "tcav",
    "uc",
    "whdr",
]
