"""All parts: those of every commit, and those on demand."""

from __future__ import annotations

from typing import Final

from .modules import (
    BLACKJAX_MODULES,
    BRAX_MODULES,
    DISTRAX_MODULES,
    E3NN_MODULES,
    GPJAX_MODULES,
    GRAIN_MODULES,
    HAIKU_LAYERS,
    JAX_MD_MODULES,
    KERAS_IGNORED,
    KERAS_LAYERS,
    KERAS_MODULES,
    KERAS_OTHERS,
    MAXTEXT_NEEDS,
    MJX_MODULES,
    MJX_SIMULATION,
    PENZAI_DEVICES,
)
from .parts import Script, Suite

OF_EVERY_COMMIT: Final[tuple[Suite | Script, ...]] = (
    Suite("chex", "chex"),
    Suite("optax", "optax", shares=10),
    Script("optax_digits", "optax", rtol=1e-3, atol=1e-5),
    Script("stax_digits", "jax", rtol=1e-3, atol=1e-5),
    Script("haiku_mlp", "dm-haiku", rtol=1e-3, atol=1e-5),
    Script("equinox_mlp", "equinox", rtol=1e-3, atol=1e-5),
    Script("jaxopt_solvers", "jaxopt", rtol=2e-3, atol=1e-4),
    Script("lineax_solves", "lineax", rtol=1e-4, atol=1e-5),
    Script("optimistix_solvers", "optimistix", rtol=1e-3, atol=1e-4),
    Script("jaxtyping_shapes", "jaxtyping", rtol=0.0, atol=0.0),
    Script("flax_sharded", "flax", rtol=1e-3, atol=1e-4),
    Script("orbax_sharded", "orbax-checkpoint", rtol=1e-3, atol=1e-5),
    Script("einops_shapes", "einops", rtol=1e-6, atol=1e-6),
)
"""Parts that ``nox -s ecosystem`` runs."""

ON_DEMAND: Final[tuple[Suite | Script, ...]] = (
    Script("blackjax_samplers", "blackjax", rtol=1e-4, atol=1e-5),
    Script("brax_physics", "brax", rtol=1e-4, atol=1e-5),
    Script("datasets_batches", "datasets", rtol=1e-4, atol=1e-5),
    Script("diffrax_modules", "diffrax", rtol=1e-6, atol=1e-8),
    Script("diffrax_solves", "diffrax", rtol=1e-6, atol=1e-8),
    Script("distrax_distributions", "distrax", rtol=1e-4, atol=1e-5),
    Script("dm_pix_images", "dm_pix", rtol=1e-4, atol=1e-5),
    Script("dynamiqs_cavity", "dynamiqs", rtol=1e-8, atol=1e-8),
    Script("dynamiqs_modules", "dynamiqs", rtol=1e-6, atol=1e-8),
    Script("e3nn_tensors", "e3nn-jax", rtol=1e-4, atol=1e-5),
    Script("equinox_modules", "equinox", rtol=1e-4, atol=1e-5),
    Script("evosax_strategies", "evosax", rtol=1e-3, atol=1e-4),
    Script("evosax_modules", "evosax", rtol=1e-4, atol=1e-4),
    Script("flax_nnx", "flax", rtol=1e-3, atol=1e-4),
    Script("gpjax_regression", "gpjax", rtol=1e-6, atol=1e-8),
    Script("gymnax_environments", "gymnax", rtol=1e-4, atol=1e-5, needs=("six",)),
    Script("interpax_curves", "interpax", rtol=1e-8, atol=1e-8),
    Script("jax_md_fluid", "jax-md", rtol=1e-6, atol=1e-8),
    Script("jaxopt_modules", "jaxopt", rtol=1e-5, atol=1e-6),
    Script("jraph_graphs", "jraph", rtol=1e-4, atol=1e-5),
    Script("keras_training", "keras", rtol=1e-3, atol=1e-4),
    Script("lineax_modules", "lineax", rtol=1e-6, atol=1e-8),
    Script("maxtext_pretraining", "maxtext", rtol=1e-4, atol=1e-3, needs=MAXTEXT_NEEDS),
    Script("mctx_search", "mctx", rtol=1e-4, atol=1e-5),
    Script("mjx_physics", "mujoco-mjx", rtol=1e-4, atol=1e-6),
    Script("netket_vmc", "netket", rtol=1e-6, atol=1e-8, varies=True),
    Script("netket_modules", "netket", rtol=1e-6, atol=1e-8, varies=True),
    Script("numpyro_models", "numpyro", rtol=1e-3, atol=1e-4, varies=True),
    Script("optimistix_modules", "optimistix", rtol=1e-6, atol=1e-8),
    Script("orbax_modules", "orbax-checkpoint", rtol=1e-6, atol=1e-8),
    Script("ott_modules", "ott-jax", rtol=1e-5, atol=1e-8),
    Script("ott_tools_modules", "ott-jax", rtol=1e-5, atol=1e-8),
    Script("ott_transport", "ott-jax", rtol=1e-3, atol=1e-4),
    Script("penzai_model", "penzai", rtol=1e-3, atol=1e-5),
    Script("pymc_modules", "pymc", rtol=1e-7, atol=1e-9, needs=("numpyro",)),
    Script("pymc_samplers", "pymc", rtol=1e-4, atol=1e-5, needs=("numpyro",)),
    Script("pytensor_modules", "pytensor", rtol=1e-8, atol=1e-10, needs=("numpyro",)),
    Script("quax_arrays", "quax", rtol=1e-4, atol=1e-5),
    Script("rlax_losses", "rlax", rtol=1e-4, atol=1e-5),
    Script("sbijax_inference", "sbijax", rtol=1e-2, atol=1e-3),
    Script("tfp_distributions", "tfp-nightly", rtol=1e-4, atol=1e-5),
    Script("tinygp_regression", "tinygp", rtol=1e-8, atol=1e-8),
    Script("torax_run", "torax", rtol=1e-6, atol=1e-8),
    Script("checkpoints_resumed", "orbax-checkpoint", rtol=1e-5, atol=1e-6, needs=("safetensors",)),
    Script("exported_artifacts", "jax", rtol=1e-4, atol=1e-6),
    Script("grain_resumed", "grain", rtol=1e-5, atol=1e-6),
    Script("onnx_model", "onnx", rtol=1e-3, atol=1e-5),
    Script("safetensors_npz", "safetensors", rtol=1e-5, atol=1e-6),
    Script("torch_dlpack", "torch", rtol=1e-4, atol=1e-5, large=True),
    Script("stablehlo_iree", "iree-base-compiler", rtol=1e-4, atol=1e-5),
    Suite("brax", "brax", shares=3, modules=tuple(f"{name}_test.py" for name in BRAX_MODULES)),
    # A part of the modules: all of them take hours.
    Suite("blackjax", "blackjax", shares=2, tests="tests", modules=BLACKJAX_MODULES),
    # Ignored: a module that enables 64-bit dtypes for later ones, and two that compile for minutes.
    Suite(
        "distrax",
        "distrax",
        shares=20,
        ignored=(
            "_src/bijectors/rational_quadratic_spline_float64_test.py",
            "_src/bijectors/rational_quadratic_spline_test.py",
            "_src/utils/hmm_test.py",
        ),
        modules=DISTRAX_MODULES,
    ),
    # Ignored: modules that need tensorflow.
    Suite(
        "dm_pix",
        "dm_pix",
        ignored=tuple(
            f"_src/{name}_test.py"
            for name in ("augment", "color_conversion", "depth_and_space", "metrics", "patch")
        ),
    ),
    # Ignored: the modules of the other parts, and a module that needs tensorflow.
    Suite(
        "dm-haiku",
        "haiku",
        shares=4,
        ignored=(
            "_src/flax",
            "_src/integration",
            "_src/nets",
            "_src/transform_test.py",
            *(f"_src/{name}_test.py" for name in HAIKU_LAYERS),
        ),
        needs=("dill",),
    ),
    # Ignored: a module that needs tensorflow.
    Suite(
        "dm-haiku",
        "haiku",
        shares=2,
        modules=tuple(f"_src/{name}_test.py" for name in HAIKU_LAYERS if name != "reshape"),
        part="layers",
    ),
    Suite("dm-haiku", "haiku", shares=4, modules=("_src/flax", "_src/nets"), part="nets"),
    # Ignored: modules that need tensorflow (jax2tf) or files that the wheel does not contain
    # (checkpoint), and one that trains networks in docstrings for minutes (doctest).
    Suite(
        "dm-haiku",
        "haiku",
        shares=10,
        ignored=tuple(
            f"_src/integration/{name}_test.py" for name in ("checkpoint", "doctest", "jax2tf")
        ),
        modules=("_src/integration",),
        part="integration",
    ),
    Suite("e3nn-jax", "e3nn_jax", shares=2, tests="tests", modules=E3NN_MODULES),
    # Ignored: folders with modules of the same names, and modules that need tensorflow.
    Suite(
        "flax",
        "flax",
        shares=3,
        tests="tests",
        ignored=("linen", "nnx", "io_test.py", "tensorboard_test.py"),
        part="core_tests",
    ),
    Suite("flax", "flax", shares=6, tests="tests/linen", part="linen_tests"),
    Suite("flax", "flax", shares=6, tests="tests/nnx", part="nnx_tests"),
    Suite("gpjax", "gpjax", shares=3, tests="tests", modules=GPJAX_MODULES, needs=("hypothesis",)),
    Suite("grain", "grain", modules=GRAIN_MODULES),
    Suite("interpax", "interpax", shares=6, tests="tests"),
    Suite(
        "jax-md",
        "jax_md",
        shares=20,
        tests="tests",
        modules=tuple(f"{name}_test.py" for name in JAX_MD_MODULES),
        needs=("netcdf4",),
    ),
    Suite("jmp", "jmp"),
    # Ignored: modules that jax 0.12 and the installed flax cannot import, and examples.
    Suite(
        "jraph",
        "jraph",
        ignored=("_src/utils_test.py", "experimental/sharded_graphnet_test.py", "ogb_examples"),
    ),
    Suite(
        "keras", "keras", shares=6, modules=KERAS_MODULES, environment=(("KERAS_BACKEND", "jax"),)
    ),
    Suite(
        "keras",
        "keras",
        modules=tuple(
            f"src/backend/jax/{name}_test.py" for name in ("core", "distribution_lib", "trainer")
        ),
        environment=(("KERAS_BACKEND", "jax"), ("JAX_NUM_CPU_DEVICES", "8")),
        part="device_tests",
    ),
    # All tests take more than 5 minutes.
    Suite(
        "keras",
        "keras",
        shares=10,
        modules=("src/ops/numpy_test.py",),
        environment=(("KERAS_BACKEND", "jax"),),
        part="numpy",
    ),
    Suite(
        "keras",
        "keras",
        shares=8,
        ignored=KERAS_IGNORED,
        modules=KERAS_LAYERS,
        environment=(("KERAS_BACKEND", "jax"),),
        part="layers",
    ),
    Suite(
        "keras",
        "keras",
        shares=10,
        ignored=KERAS_IGNORED,
        modules=KERAS_OTHERS,
        environment=(("KERAS_BACKEND", "jax"),),
        part="others",
        needs=("grain", "pandas", "pillow"),
    ),
    Suite("mctx", "mctx"),
    Suite(
        "mujoco-mjx",
        "mujoco.mjx",
        shares=3,
        modules=tuple(f"_src/{name}_test.py" for name in MJX_MODULES),
    ),
    Suite(
        "mujoco-mjx",
        "mujoco.mjx",
        shares=20,
        modules=tuple(f"_src/{name}_test.py" for name in MJX_SIMULATION),
        part="simulation",
    ),
    # Ignored: modules that run for more than 10 minutes (distributions, gof), whose random numbers
    # have no seed (diagnostics), or that need data from the internet or graphviz.
    Suite(
        "numpyro",
        "numpyro",
        shares=12,
        tests="test",
        ignored=tuple(
            f"test_{name}.py"
            for name in (
                "diagnostics",
                "distributions",
                "example_utils",
                "examples",
                "gof",
                "model_rendering",
            )
        ),
        needs=("funsor",),
    ),
    # All tests take hours. Ignored: tests with parameters from random numbers without a seed, which
    # compare to 1e-7 or with means of samples.
    Suite(
        "numpyro",
        "numpyro",
        shares=50,
        tests="test",
        ignored=(
            "test_distributions.py::test_composed_transform",
            "test_distributions.py::test_kl_univariate",
        ),
        modules=("test_distributions.py", "test_gof.py"),
        part="distributions",
        needs=("funsor",),
    ),
    # Ignored: a module that needs torch, one that sets the number of devices (the next part), and
    # one of treescope, which imports others of the folder by the path of the repository.
    Suite(
        "penzai",
        "penzai",
        shares=3,
        tests="tests",
        ignored=(
            "models/transformer_consistency_test.py",
            PENZAI_DEVICES,
            "treescope/renderer_test.py",
        ),
    ),
    Suite("penzai", "penzai", tests="tests", modules=(PENZAI_DEVICES,), part="device_tests"),
    Suite("quax", "quax", shares=5, tests="tests"),
    # Ignored: a module that sets the number of devices, which has to be the first one.
    Suite("rlax", "rlax", shares=4, ignored=("_src/pop_art_test.py",)),
    Suite("rlax", "rlax", modules=("_src/pop_art_test.py",), part="device_tests"),
    # Ignored: a module that needs george.
    Suite("tinygp", "tinygp", shares=2, tests="tests", ignored=("test_george_compat.py",)),
)
"""Parts that run if they are named, with ``--all``, or in a quick run when it is their turn."""

PARTS: Final = OF_EVERY_COMMIT + ON_DEMAND
