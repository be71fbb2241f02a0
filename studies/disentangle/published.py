"""Values of the CANDLE papers, beside which ours stand; UC with ρ > 1 and all CG are no targets, the released code errs."""

from typing import NamedTuple


class Published(NamedTuple):
    """A line of Table 2: IRS, then UC and CG at ρ = 1 and at ρ = 2."""

    irs: float
    uc1: float
    cg1: float
    uc2: float
    cg2: float


#: Reddy, Godfrey L, Balasubramanian: CANDLE, Table 2.
CANDLE = {
    "beta_vae": Published(0.80, 0.40, 0.21, 0.13, 0.20),
    "beta_tcvae": Published(0.50, 0.70, 0.20, 0.29, 0.20),
    "dip_vae": Published(0.24, 0.40, 0.13, 0.29, 0.14),
    "factor_vae": Published(0.47, 0.40, 0.22, 0.13, 0.15),
    "ss_beta_vae": Published(0.51, 0.80, 0.28, 0.60, 0.19),
    "ss_beta_tcvae": Published(0.49, 0.80, 0.25, 0.46, 0.25),
    "ss_dip_vae": Published(0.29, 0.40, 0.32, 0.26, 0.19),
    "ss_factor_vae": Published(0.46, 0.40, 0.36, 0.60, 0.21),
}
SPRITES = {
    "beta_vae": Published(0.40, 0.90, 0.12, 0.60, 0.10),
    "beta_tcvae": Published(0.62, 0.90, 0.12, 0.60, 0.13),
    "dip_vae": Published(0.48, 0.80, 0.10, 0.53, 0.10),
    "factor_vae": Published(0.52, 0.90, 0.14, 0.60, 0.14),
    "ss_beta_vae": Published(0.55, 0.90, 0.16, 0.30, 0.15),
    "ss_beta_tcvae": Published(0.70, 0.90, 0.15, 0.33, 0.14),
    "ss_dip_vae": Published(0.24, 0.40, 0.08, 0.13, 0.06),
    "ss_factor_vae": Published(0.47, 0.90, 0.15, 0.33, 0.14),
}
#: The version of AAAI 2022 (64 latents, six factors): IRS, and CG at ρ = 5.
AAAI = {
    "beta_vae": (0.85, 0.24),
    "beta_tcvae": (0.82, 0.25),
    "dip_vae": (0.33, 0.21),
    "factor_vae": (0.88, 0.26),
    "ss_beta_vae": (0.74, 0.28),
    "ss_beta_tcvae": (0.68, 0.23),
    "ss_dip_vae": (0.35, 0.22),
    "ss_factor_vae": (0.61, 0.28),
}


class Logged(NamedTuple):
    """A published network of sprites: its KL in epochs 0 and 1 (11,520 steps each), active latents, MIG at the end."""

    divergence: tuple[float, float]
    active: str
    reconstruction: tuple[float, ...]
    mig: float


#: From the training logs beside the networks of Dubois et al., disentangling-vae; MIG is that of the networks themselves.
LOGS = {
    "beta_vae": Logged((20.7, 15.0), "10 at the end", (88, 64), 0.119),
    "beta_tcvae": Logged((17.7, 12.2), "10 → 6, 5 at the end", (), 0.133),
}
