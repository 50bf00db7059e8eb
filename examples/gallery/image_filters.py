"""Image filters

Blurs, finds edges, removes noise and sharpens. The filters are those of `primax.scipy.ndimage`; the
last two minimize a loss of the image itself, with `grad`.

Method: total variation, Rudin, Osher, Fatemi, Physica D 60 (1992).
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import primax
import primax.numpy as jnp
from primax import lax, random
from primax.scipy import ndimage

QUICK = "--quick" in sys.argv
STEPS = 60 if QUICK else 300

# %%
photograph = load_sample_image("china.jpg")[20:340, 150:470].mean(axis=2) / 255.0
image = jnp.asarray(photograph, jnp.float32)
if QUICK:  # means of 2 x 2 pixels
    image = image.reshape(160, 2, 160, 2).mean(axis=(1, 3))
print(f"image of {image.shape[0]} x {image.shape[1]} pixels")


def quality(a):
    """Peak signal-to-noise ratio in decibels."""
    return float(-10 * jnp.log10(jnp.mean((a - image) ** 2)))


# %% [markdown]
# ## Edges and blur

# %%
blurred = ndimage.gaussian_filter(image, 2.0)
edges = jnp.hypot(ndimage.sobel(image, axis=0), ndimage.sobel(image, axis=1))

# %% [markdown]
# ## Noise
#
# A tenth of the pixels is black or white. The median of a window ignores them; a Gaussian filter
# does not.

# %%
noise_key, value_key, blur_key = random.split(random.key(0), 3)
broken = random.uniform(noise_key, image.shape) < 0.1
salted = jnp.where(broken, random.bernoulli(value_key, 0.5, image.shape), image)
median = ndimage.median_filter(salted, size=3)
smooth = ndimage.gaussian_filter(salted, 1.0)
print(f"noisy {quality(salted):.1f} dB, Gaussian {quality(smooth):.1f} dB, ", end="")
print(f"median {quality(median):.1f} dB")
assert quality(median) > quality(smooth) + 0.5 > quality(salted) + 3

# %% [markdown]
# ## Sharpening as an optimization
#
# The data are blurred and have noise. The sharp image minimizes the distance of its blurred version
# to the data, plus the sum of its differences (total variation).

# %%
observed = ndimage.gaussian_filter(image, 1.5) + 0.01 * random.normal(blur_key, image.shape)


def loss(candidate, weight):
    difference = ndimage.gaussian_filter(candidate, 1.5) - observed
    down, across = jnp.diff(candidate, axis=0), jnp.diff(candidate, axis=1)
    variation = jnp.sqrt(down[:, :-1] ** 2 + across[:-1] ** 2 + 1e-4)
    return 0.5 * jnp.sum(difference**2) + weight * jnp.sum(variation)


@primax.jit
def sharpen(weight):
    def step(carry, i):  # Nesterov's accelerated gradient descent
        current, ahead = carry
        following = ahead - 0.8 * primax.grad(loss)(ahead, weight)
        return (following, following + i / (i + 3) * (following - current)), None

    (result, _), _ = lax.scan(step, (observed, observed), jnp.arange(STEPS))
    return result


weights = jnp.array([3e-5, 3e-4, 3e-3])
candidates = primax.vmap(sharpen)(weights)  # three strengths at once
best = max(candidates, key=quality)
print(f"blurred {quality(observed):.1f} dB, sharpened {quality(best):.1f} dB")
assert quality(best) > quality(observed) + 0.5

# %%
shown = {
    "original": image,
    "Gaussian blur": blurred,
    "edges (Sobel)": edges / edges.max(),
    "wrong pixels": salted,
    "median filter": median,
    "Gaussian filter": smooth,
    "blurred with noise": observed,
    "sharpened": best,
}
figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), layout="constrained")
for ax, (title, picture) in zip(axes.flat, shown.items()):
    ax.imshow(np.clip(picture, 0, 1), cmap="gray")
    ax.set_title(title, fontsize=10)
    ax.axis("off")
plt.show()
