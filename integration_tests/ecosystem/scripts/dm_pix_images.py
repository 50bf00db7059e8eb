"""PIX: colours, filters, geometry and metrics of images."""

import json

import dm_pix as pix
import jax
import jax.numpy as jnp

image = jax.random.uniform(jax.random.key(0), (16, 16, 3))
key = jax.random.key(1)
operations = {
    "brightness": lambda x: pix.adjust_brightness(x, 0.1),
    "hue": lambda x: pix.adjust_hue(x, 0.2),
    "saturation": lambda x: pix.adjust_saturation(x, 0.7),
    "gamma": lambda x: pix.adjust_gamma(x, 1.3),
    "blur": lambda x: pix.gaussian_blur(x, 1.2, 5),
    "hsv": pix.rgb_to_hsv,
    "grey": pix.rgb_to_grayscale,
    "flip": pix.flip_left_right,
    "rotate": lambda x: pix.rotate(x, 0.4),
    "affine": lambda x: pix.affine_transform(
        x, jnp.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    ),
    "random crop": lambda x: pix.random_crop(key, x, (8, 8, 3)),
    "random contrast": lambda x: pix.random_contrast(key, x, 0.5, 1.5),
    "sobel": lambda x: pix.sobel_edges(x) if hasattr(pix, "sobel_edges") else x,
    "depth": lambda x: pix.space_to_depth(x, 2) if hasattr(pix, "space_to_depth") else x,
}
results = {}
for name, operation in operations.items():
    out = jax.jit(operation)(image)
    results[name] = [float(out.mean()), float(out.std()), list(out.shape)]
other = pix.gaussian_blur(image, 2.0, 5)
for name in ("psnr", "ssim", "mae", "mse", "rmse"):
    results[name] = float(getattr(pix, name)(image, other))
results["gradient"] = float(jnp.abs(jax.grad(lambda x: pix.ssim(x, other))(image)).sum())
print(json.dumps(results))
