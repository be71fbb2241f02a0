"""Explanations of transformers written out by hand, one token and one head at a time, in float64."""

import numpy as np


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def gelu(x):
    from scipy.special import erf

    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def attention_maps(net, x):
    """The attention (heads, t, t) of every block of our VisionTransformer for tokens, from its weights alone."""
    state = {k: v.double().numpy() for k, v in net.state_dict().items()}
    tokens, found = x, []
    for b, block in enumerate(net.blocks):
        w = {k.removeprefix(f"blocks.{b}."): v for k, v in state.items() if k.startswith(f"blocks.{b}.")}
        heads, (count, width) = block.attn.heads, tokens.shape
        y = layer_norm(tokens, w["norm1.weight"], w["norm1.bias"], 1e-6)
        qkv = (y @ w["attn.qkv.weight"].T + w["attn.qkv.bias"]).reshape(count, 3, heads, width // heads)
        maps = np.stack([softmax(qkv[:, 0, h] @ qkv[:, 1, h].T / np.sqrt(width // heads)) for h in range(heads)])
        mixed = np.concatenate([maps[h] @ qkv[:, 2, h] for h in range(heads)], axis=1)
        tokens = tokens + mixed @ w["attn.proj.weight"].T + w["attn.proj.bias"]
        y = layer_norm(tokens, w["norm2.weight"], w["norm2.bias"], 1e-6)
        inner = gelu(y @ w["mlp.fc1.weight"].T + w["mlp.fc1.bias"])
        tokens = tokens + inner @ w["mlp.fc2.weight"].T + w["mlp.fc2.bias"]
        found.append(maps)
    return found


def rollout(maps, skip):
    """Abnar & Zuidema 2020, token by token: row 0 of the product, and the whole product."""
    count = maps[0].shape[-1]
    product = np.eye(count)
    for attention in maps[skip:]:
        step = np.zeros((count, count))
        for i in range(count):
            for j in range(count):
                step[i, j] = np.mean([head[i, j] for head in attention]) + (i == j)
            step[i] /= step[i].sum()
        product = step @ product
    return product


def chefer_one_layer(x, wq, wk, wv, head):
    """Chefer et al. 2021 in closed form for tokens x (t, d): y = x + softmax(x wqᵀ (x wkᵀ)ᵀ/√d)·x wvᵀ, logit = head·y₀.

    Only row 0 of the map matters to the logit: ∂/∂A₀ⱼ = head·vⱼ. Relevance: 1 at the logit; y₀ takes its positive share of
    head·y₀; skip and attention share it; A₀ⱼ takes half of its share of o₀ = Σ A₀ⱼ vⱼ.
    """
    v = x @ wv.T
    A = softmax((x @ wq.T) @ (x @ wk.T).T / np.sqrt(x.shape[1]))
    o = A @ v
    y = x[0] + o[0]
    positive = np.maximum(head * y, 0)
    R = positive / positive.sum()
    skip, mixed = R * x[0] / y, R * o[0] / y
    shares = abs(skip.sum()), abs(mixed.sum())
    mixed = mixed / mixed.sum() * shares[1] / sum(shares) * R.sum()
    R_A = A[0] * (v @ (mixed / o[0])) / 2
    return np.maximum((v @ head) * R_A, 0)
