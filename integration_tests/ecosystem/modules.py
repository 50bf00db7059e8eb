"""Modules of the libraries' test suites that run, or that do not, and what they need."""

from typing import Final

HAIKU_LAYERS: Final = (
    "attention", "basic", "batch_norm", "bias", "conv", "depthwise_conv", "dot", "embed",
    "group_norm", "layer_norm", "moving_averages", "no_flax", "pad", "pool", "reshape", "rms_norm",
    "spectral_norm", "test_utils",
)  # fmt: skip
"""Modules of Haiku's tests in the part ``layers``."""

BRAX_MODULES: Final = (
    "base", "com", "contact", "envs/wrappers/training", "io/mjcf", "kinematics", "math",
    "positional/joints", "scan", "spring/joints", "training/agents/ppo/losses",
    "training/replay_buffers", "training/types",
)  # fmt: skip
"""Modules of Brax's tests that end within minutes; the others simulate or train."""

KERAS_MODULES: Final = (
    "src/layers/activations", "src/layers/core", "src/optimizers",
    *(f"src/ops/{name}_test.py" for name in (
        "core", "function", "linalg", "math", "nn", "node", "operation_utils", "ops",
        "symbolic_arguments",
    )),
)  # fmt: skip
"""Folders and modules of the first part of Keras' tests."""

KERAS_LAYERS: Final = (
    *(f"src/layers/{name}" for name in (
        "attention", "convolutional", "merging", "normalization", "pooling", "regularization",
        "reshaping", "rnn",
    )),
    "src/layers/layer_test.py",
)  # fmt: skip
"""Folders and modules of the tests of Keras' layers; those of preprocessing need tensorflow."""

KERAS_OTHERS: Final = tuple(
    f"src/{name}" for name in (
        "activations", "callbacks", "constraints", "distillation", "dtype_policies", "initializers",
        "legacy", "losses", "metrics", "models", "quantizers", "random", "regularizers", "saving",
        "testing", "trainers", "tree", "utils", "wrappers",
    )
)  # fmt: skip
"""Folders of the tests of what surrounds Keras' layers."""

KERAS_IGNORED: Final = tuple(
    f"src/{name}_test.py" for name in (
        "callbacks/remote_monitor", "callbacks/swap_ema_weights", "callbacks/tensorboard",
        "initializers/constant_initializers", "initializers/random_initializers",
        "layers/reshaping/flatten", "trainers/data_adapters/array_data_adapter",
        "trainers/data_adapters/generator_data_adapter",
        "trainers/data_adapters/grain_dataset_adapter",
        "trainers/data_adapters/py_dataset_adapter", "trainers/data_adapters/tf_dataset_adapter",
        "trainers/data_adapters/torch_data_loader_adapter", "trainers/epoch_iterator",
        "utils/dataset_utils", "utils/jax_layer", "utils/torch_utils", "wrappers/sklearn",
    )
)  # fmt: skip
"""Modules that need tensorflow or torch, or a file that the wheel does not contain, and one whose
tests have names with line breaks."""

MJX_MODULES: Final = ("dataclasses", "inverse", "math", "passive", "ray", "scan")
"""Modules of MJX's tests that end within minutes; the others compile for longer."""

MJX_SIMULATION: Final = (
    "collision_driver", "constraint", "forward", "io", "mesh", "sensor", "solver", "support",
)  # fmt: skip
"""Modules of MJX's tests in the part ``simulation``."""

JAX_MD_MODULES: Final = (
    "custom_smap", "energy", "minimize", "nn", "partition", "quantity", "rigid_body", "smap",
    "space",
)  # fmt: skip
"""Modules of JAX MD's tests that run; the others need ase, openmm or weights of networks, or
simulate for hours."""

PENZAI_DEVICES: Final = "deprecated/v1/toolshed/sharding_util_test.py"
"""Module of penzai's tests that has to run before the number of devices is known."""

BLACKJAX_MODULES: Final = (
    "adaptation/test_mass_matrix.py", "mcmc/test_proposal.py", "mcmc/test_uturn.py",
    "smc/test_resampling.py", "smc/test_solver.py",
)  # fmt: skip
"""Modules of BlackJAX's tests that run."""

DISTRAX_MODULES: Final = (
    "_src/bijectors", "_src/utils",
    *(f"_src/distributions/{name}_test.py" for name in (
        "clipped", "deterministic", "distribution", "distribution_from_tfp", "epsilon_greedy",
        "greedy", "logistic", "mvn_from_bijector", "mvn_full_covariance", "mvn_tri", "normal",
        "softmax", "tfp_compatible_distribution", "uniform",
    )),
)  # fmt: skip
"""Folders and modules of Distrax's tests that run; the other distributions take hours."""

E3NN_MODULES: Final = tuple(
    f"_src/{name}_test.py"
    for name in (
        "activation", "basic", "batchnorm/bn_flax", "config", "gate", "grad", "irreps",
        "irreps_array", "perm", "radius_graph", "scatter", "utils/einsum",
    )
)  # fmt: skip
"""Modules of e3nn's tests that run."""

GPJAX_MODULES: Final = tuple(
    f"test_{name}.py"
    for name in (
        "dataset", "integrators", "kernels/test_computation", "kernels/test_utils", "likelihoods",
        "linalg", "mean_functions", "numerical_stability",
    )
)  # fmt: skip
"""Modules of GPJax's tests that run."""

MAXTEXT_NEEDS: Final = (
    "aqtp", "drjax", "grain", "huggingface-hub", "jinja2", "ml-collections", "omegaconf",
    "pathwaysutils", "pillow", "qwix", "sentencepiece", "sympy", "tiktoken", "tokamax",
    "transformers",
)  # fmt: skip
"""What MaxText imports; its metadata names no requirements."""

GRAIN_MODULES: Final = (
    "_src/core/jax_import_smoke_test.py", "_src/core/tree_lib_jax_test.py",
    "_src/python/dataset/base_test.py", "_src/python/ipc/shared_memory_array_test.py",
)  # fmt: skip
"""Modules of Grain's tests that use jax."""
