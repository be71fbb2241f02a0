"""The learners' losses against loops shaped like the papers, on one batch and network, and in closed form on Gaussians."""

from itertools import permutations

import numpy as np
import pytest

from tests.reference import objective_loops as loops

torch = pytest.importorskip("torch")

from diorama.methods.represent.burgess_network import Autoencoder  # noqa: E402
from diorama.training.learner import Criterion, Learner  # noqa: E402
from diorama.training.objectives.beta_tcvae import BetaTcvae, log_weights, total_correlation  # noqa: E402
from diorama.training.objectives.beta_vae import BetaVae  # noqa: E402
from diorama.training.objectives.boxes import inside, reconstruction  # noqa: E402
from diorama.training.objectives.dip_vae import DipVae  # noqa: E402
from diorama.training.objectives.factor_vae import FactorVae  # noqa: E402
from diorama.training.objectives.objective import Passed, kl  # noqa: E402

BATCH, LATENTS, FACTORS, COUNT = 6, 4, 3, 50


def batch(objective, labelled=True):
    """A batch on its way through a network with random weights, and its targets: labels and boxes."""
    torch.manual_seed(3)
    net = Autoencoder(LATENTS, 1, 32)
    with torch.no_grad():  # fresh weights give codes near 0, on which nothing differs
        net.encoder.mu_logvar_gen.weight *= 40
    learner = Learner(net, objective.critic(LATENTS), BATCH, seed=7).train()
    generator = np.random.default_rng(0)
    images = generator.random((2 * BATCH if labelled else BATCH, 1, 32, 32)).astype(np.float32)
    targets = generator.random((len(images), FACTORS + 4)).astype(np.float32) * 0.5
    targets[:, FACTORS + 2 :] += targets[:, FACTORS : FACTORS + 2]
    return learner(torch.from_numpy(images)), torch.from_numpy(targets)


def listed(tensor):
    return tensor.detach().double().tolist()


def reference(objective, seen):
    """The penalty by the loops."""
    mean, logs, z = listed(seen.mean), listed(seen.log_variance), listed(seen.z)
    kl_term = loops.kl_of(mean, logs)
    if isinstance(objective, BetaVae):
        return objective.beta * kl_term
    if isinstance(objective, BetaTcvae):
        return kl_term + (objective.beta - 1) * loops.total_correlation(z, mean, logs, COUNT, objective.estimate)
    if isinstance(objective, DipVae):
        factor = objective.factor or (10 if objective.kind == "i" else 1)
        off = objective.off
        return kl_term + loops.covariance_penalty(mean, logs, objective.kind, off, factor * off)
    correlation, critic = loops.critic_terms(*(listed(part) for part in seen.judged))
    return kl_term + objective.gamma * correlation + critic


OBJECTIVES = [
    BetaVae(10.0),
    BetaTcvae(6.0),
    BetaTcvae(6.0, "stratified"),
    DipVae("i", 5.0),
    DipVae("ii", 5.0, 3.0),
    FactorVae(4.0, 20),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_losses_are_those_of_the_papers(objective):
    seen, targets = batch(objective)
    logits, x = listed(seen.logits.flatten(1)), listed(seen.x.flatten(1))
    error = sum(loops.bernoulli(a, b) for a, b in zip(x, logits, strict=True)) / BATCH
    labels = loops.label_terms(listed(seen.labelled), listed(targets[BATCH:, :FACTORS]))
    wanted = error + reference(objective, seen) + 4 * labels
    criterion = Criterion(objective, COUNT, FACTORS, labels=4.0)
    assert criterion(seen, targets).item() == pytest.approx(wanted, rel=1e-5)
    assert criterion.last["KL"] == pytest.approx(loops.kl_of(listed(seen.mean), listed(seen.log_variance)), rel=1e-5)
    assert objective.penalty(seen, COUNT).item() == pytest.approx(reference(objective, seen), rel=1e-5)


def test_pixels_in_the_box_count_more():
    seen, targets = batch(BetaVae())
    boxes = targets[:BATCH, FACTORS:]
    side, wanted = 32, []
    x, logits = listed(seen.x[:, 0]), listed(seen.logits[:, 0])
    for k in range(BATCH):
        x0, y0, x1, y1 = listed(boxes[k])
        total = 0.0
        for row in range(side):
            for column in range(side):
                touched = (column + 1) / side > x0 and column / side < x1 and (row + 1) / side > y0 and row / side < y1
                one = loops.bernoulli([x[k][row][column]], [logits[k][row][column]])
                total += one * (1 + 5 * touched)
        wanted.append(total)
    assert listed(reconstruction(seen.logits, seen.x, boxes, 5.0)) == pytest.approx(wanted, rel=1e-5)
    assert float(inside(torch.zeros(1, 4), 8).sum()) == 0  # a world without boxes


def gaussian(count, correlation, spread):
    """Codes of images whose means are a correlated Gaussian, sampled with a fixed spread: q(z) is Gaussian too."""
    generator = np.random.default_rng(1)
    mean = generator.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], count)
    z = mean + spread * generator.standard_normal((count, 2))
    made = [torch.from_numpy(a.astype(np.float32)) for a in (mean, z)]
    none = torch.zeros(0)
    return Passed(none, none, made[0], torch.full((count, 2), 2 * float(np.log(spread))), made[1], none, none)


def test_total_correlation_of_a_gaussian():
    correlation, spread = 0.8, 0.3
    seen = gaussian(2500, correlation, spread)
    across = correlation / (1 + spread**2)
    wanted = -0.5 * np.log(1 - across**2)
    assert float(total_correlation(seen, 2500, "weighted")) == pytest.approx(wanted, abs=0.03)
    assert float(total_correlation(seen, 10**6, "stratified")) == pytest.approx(wanted, abs=0.03)
    assert float(total_correlation(gaussian(2500, 0.0, spread), 2500, "weighted")) == pytest.approx(0, abs=0.03)
    told = 0.5 * (1 + spread**2 + 1 - 2 - 2 * np.log(spread) * 2 + spread**2)  # E μ² = 1 for both latents
    assert float(kl(seen)) == pytest.approx(told, abs=0.08)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_penalties_grow_and_what_the_critic_learns_does_not(objective):
    seen, _ = batch(objective)
    none, half, full = (objective.penalty(seen._replace(grown=torch.tensor(a)), COUNT).item() for a in (0.0, 0.5, 1.0))
    assert half == pytest.approx((none + full) / 2, rel=1e-5) and full == pytest.approx(
        reference(objective, seen), rel=1e-5
    )
    assert none > 0.1 if isinstance(objective, FactorVae) else none == 0


def test_the_share_grows_with_the_steps():
    learner = Learner(Autoencoder(LATENTS, 1, 32), None, BATCH, 0, anneal=4).train()
    images = torch.zeros(BATCH, 1, 32, 32)
    assert [float(learner(images).grown) for _ in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert float(Learner(Autoencoder(LATENTS, 1, 32), None, BATCH, 0).train()(images).grown) == 1


def test_the_critic_that_knows_the_ratio_gives_the_total_correlation():
    correlation, spread = 0.8, 0.3
    seen = gaussian(20_000, correlation, spread)
    variance, r = 1 + spread**2, correlation / (1 + spread**2)
    a, b = (seen.z / variance**0.5).T
    ratio = -0.5 * np.log(1 - r**2) - (r**2 * (a**2 + b**2) - 2 * r * a * b) / (2 * (1 - r**2))
    logits = torch.stack([ratio, torch.zeros_like(ratio)], dim=1)
    flat = torch.zeros(len(ratio), 2)
    penalty = FactorVae(1.0).penalty(seen._replace(judged=torch.stack([logits, flat, flat])), 1)
    assert float(penalty - kl(seen)) == pytest.approx(-0.5 * np.log(1 - r**2) + np.log(2), abs=0.02)


def test_whitened_codes_cost_dip_vae_nothing_but_their_kl():
    mean = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    none = torch.zeros(0)
    seen = Passed(none, none, mean, torch.full((4, 2), -30.0), mean, none, none)
    for objective in (DipVae("i"), DipVae("ii")):
        assert float(objective.penalty(seen, 4)) == pytest.approx(float(kl(seen)), rel=1e-6)
    crossed = seen._replace(mean=mean.repeat_interleave(1, 0)[:, [0, 0]])
    assert float(DipVae("i", 10.0).penalty(crossed, 4) - kl(crossed)) == pytest.approx(20.0, rel=1e-5)


def test_the_stratified_estimate_of_the_density_is_unbiased():
    """Over all ordered batches of 3 of 5 images the estimate of q(z) of the first one's code is the mean of all five."""
    densities, batch_size = np.array([0.9, 0.1, 0.4, 2.0, 0.6]), 3
    weights = log_weights(batch_size, 5, "stratified").exp()[0].numpy()
    found = [weights @ densities[list(p)] for p in permutations(range(5), batch_size) if p[0] == 2]
    assert np.mean(found) == pytest.approx(densities.mean(), rel=1e-6)


def test_critic_and_learner_do_not_teach_each_other():
    """The critic's gradient does not depend on γ; with γ = 0 the code's gradient knows nothing of the critic."""

    def gradients(gamma):
        torch.manual_seed(0)
        objective = FactorVae(gamma, 16)
        learner = Learner(Autoencoder(LATENTS, 1, 32), objective.critic(LATENTS), BATCH, 0).train()
        seen = learner(torch.rand(BATCH, 1, 32, 32, generator=torch.Generator().manual_seed(1)))
        objective.penalty(seen, COUNT).backward()
        return {name: p.grad.clone() for name, p in learner.named_parameters() if p.grad is not None}, seen

    without, seen = gradients(0.0)
    strong, _ = gradients(50.0)
    critics = [name for name in without if name.startswith("critic")]
    assert critics and all(torch.equal(without[name], strong[name]) for name in critics)
    assert any(not torch.allclose(without[n], strong[n]) for n in strong if n.startswith("net.encoder"))
    torch.manual_seed(0)
    plain = Learner(Autoencoder(LATENTS, 1, 32), None, BATCH, 0).train()
    BetaVae(1.0).penalty(plain(seen.x), COUNT).backward()
    for name, p in plain.named_parameters():
        if p.grad is not None:
            assert torch.allclose(p.grad, without[name], atol=1e-7), name


def test_permuted_codes_keep_every_latent_and_break_the_rows():
    from diorama.training.objectives.factor_vae import judged

    z = torch.arange(20.0).view(5, 4)
    order = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(k)) for k in range(4)], dim=1)
    shown = []

    class Spy(torch.nn.Linear):
        def forward(self, x):
            shown.append(x)
            return super().forward(x)

    assert judged(Spy(4, 2), z, order).shape == (3, 5, 2)
    permuted = shown[0][5:]
    assert torch.equal(permuted.sort(0).values, z.sort(0).values) and not torch.equal(permuted, z)
