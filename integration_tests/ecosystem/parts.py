"""The parts: test suites of libraries, and a short script for each other library."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from tools.steps import Step

HERE: Final = Path(__file__).resolve().parent
REQUIREMENTS: Final = HERE / "requirements.txt"
REQUIREMENTS_ON_DEMAND: Final = HERE / "requirements_on_demand.txt"


@dataclass(frozen=True)
class Suite:
    """Test suite of ``library``, inside its installed package ``package``.

    If the wheel has no tests, ``tests`` is their folder in the source distribution, which is
    downloaded. ``ignored`` are modules, relative to the folder of the tests, that do not run: they
    need packages that are not installed, or take hours. If a library has several suites, ``part``
    distinguishes their names. If ``modules`` are given, only these files and folders of the tests
    run. ``environment`` has variables for the tests: an option that the library reads when it is
    imported. ``where`` names the cause if the suite is more than ``report.SLOWER`` times slower. A
    quick run takes one of ``shares`` parts of the tests, which the commit chooses.

    A suite ``on_demand`` runs only if it is named.
    """

    library: str
    package: str
    where: str = ""
    shares: int = 1
    tests: str = ""
    ignored: tuple[str, ...] = ()
    part: str = ""
    modules: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    on_demand: bool = False

    @property
    def name(self) -> str:
        """Name of the part on the command line."""
        return f"{self.library}_{self.part}" if self.part else self.library

    def allowed(self) -> dict[str, str]:
        """Allowed differences with reasons, from ``differences/<name>.toml``."""
        return read_allowed(HERE / "differences" / f"{self.name}.toml")

    def share(self, nodes: list[str], step: Step | None) -> list[str]:
        """Return the tests that run at a step of the rotation; all of them for ``None``."""
        if step is None or self.shares == 1:
            return nodes
        shares = min(self.shares, step.period)
        return [n for n in nodes if crc32(n.encode()) % shares == step.number % shares]


@dataclass(frozen=True)
class Script:
    """Script of the folder ``scripts`` whose last line of output is JSON.

    Its floats must agree to ``rtol`` and ``atol``: the rounding of float32, accumulated by the
      script.
    Iterative solvers stop within their own tolerance, and training amplifies differences.

    Its answers must be equal in each run of a side, unless ``varies`` is true: then they differ by
    rounding on jax too, because threads add in another order.

    A script ``on_demand`` runs only if it is named, because its libraries are many and large.
    ``pinned`` is a further file of versions, which are installed for this script only.
    """

    name: str
    library: str
    rtol: float
    atol: float
    where: str = ""
    varies: bool = False
    on_demand: bool = False
    pinned: str = ""

    @property
    def path(self) -> Path:
        """Path of the script."""
        return HERE / "scripts" / f"{self.name}.py"


def read_allowed(path: Path) -> dict[str, str]:
    """Read a TOML file of ``[[allowed]]`` tables with ``reason`` and ``tests``; return reasons by
    test.

    Raises:
      ValueError: if a test occurs twice, or a table has no reason.
    """
    reasons: dict[str, str] = {}
    if not path.exists():
        return reasons
    for table in tomllib.loads(path.read_text("utf-8")).get("allowed", []):
        if not table.get("reason"):
            raise ValueError(f"{path.name}: an entry without a reason: {table.get('tests')}")
        for test in table["tests"]:
            if test in reasons:
                raise ValueError(f"{path.name}: {test} is listed twice")
            reasons[test] = table["reason"]
    return reasons


HAIKU_LAYERS: Final = (
    "attention", "basic", "batch_norm", "bias", "conv", "depthwise_conv", "dot", "embed",
    "group_norm", "layer_norm", "moving_averages", "no_flax", "pad", "pool", "reshape", "rms_norm",
    "spectral_norm", "test_utils", "transform",
)  # fmt: skip
"""Modules of Haiku's tests that do not run."""

BRAX_MODULES: Final = (
    "base", "com", "io/mjcf", "kinematics", "math", "scan", "training/agents/ppo/losses",
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
"""Folders and modules of Keras' tests that run."""

MJX_MODULES: Final = ("dataclasses", "inverse", "math", "passive", "ray", "scan")
"""Modules of MJX's tests that end within minutes; the others compile for longer."""

BLACKJAX_MODULES: Final = (
    "adaptation/test_mass_matrix.py", "mcmc/test_proposal.py", "mcmc/test_uturn.py",
    "smc/test_resampling.py", "smc/test_solver.py",
)  # fmt: skip
"""Modules of BlackJAX's tests that run."""

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

GRAIN_MODULES: Final = (
    "_src/core/jax_import_smoke_test.py", "_src/core/tree_lib_jax_test.py",
    "_src/python/dataset/base_test.py", "_src/python/ipc/shared_memory_array_test.py",
)  # fmt: skip
"""Modules of Grain's tests that use jax."""

PARTS: Final[tuple[Suite | Script, ...]] = (
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
    Script("blackjax_samplers", "blackjax", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("brax_physics", "brax", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("datasets_batches", "datasets", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("diffrax_modules", "diffrax", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("diffrax_solves", "diffrax", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("dm_pix_images", "dm_pix", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("dynamiqs_cavity", "dynamiqs", rtol=1e-8, atol=1e-8, on_demand=True),
    Script("e3nn_tensors", "e3nn-jax", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("equinox_modules", "equinox", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("evosax_strategies", "evosax", rtol=1e-3, atol=1e-4, on_demand=True),
    Script("flax_nnx", "flax", rtol=1e-3, atol=1e-4, on_demand=True),
    Script("gpjax_regression", "gpjax", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("gymnax_environments", "gymnax", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("interpax_curves", "interpax", rtol=1e-8, atol=1e-8, on_demand=True),
    Script("jax_md_fluid", "jax-md", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("jraph_graphs", "jraph", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("keras_training", "keras", rtol=1e-3, atol=1e-4, on_demand=True),
    Script("lineax_modules", "lineax", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("maxtext_pretraining", "maxtext", rtol=1e-4, atol=1e-3, on_demand=True),
    Script("mctx_search", "mctx", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("mjx_physics", "mujoco-mjx", rtol=1e-4, atol=1e-6, on_demand=True),
    Script("netket_vmc", "netket", rtol=1e-6, atol=1e-8, varies=True, on_demand=True),
    Script("numpyro_models", "numpyro", rtol=1e-3, atol=1e-4, varies=True, on_demand=True),
    Script("ott_transport", "ott-jax", rtol=1e-3, atol=1e-4, on_demand=True),
    Script("penzai_model", "penzai", rtol=1e-3, atol=1e-5, on_demand=True),
    Script("pymc_samplers", "pymc", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("quax_arrays", "quax", rtol=1e-4, atol=1e-5, on_demand=True),
    Script("tinygp_regression", "tinygp", rtol=1e-8, atol=1e-8, on_demand=True),
    Script("torax_run", "torax", rtol=1e-6, atol=1e-8, on_demand=True),
    Script("exported_artifacts", "jax", rtol=1e-4, atol=1e-6, on_demand=True),
    Script("grain_resumed", "grain", rtol=1e-5, atol=1e-6, on_demand=True),
    Script("onnx_model", "onnx", rtol=1e-3, atol=1e-5, on_demand=True),
    Script("safetensors_npz", "safetensors", rtol=1e-5, atol=1e-6, on_demand=True),
    Script(
        "torch_dlpack",
        "torch",
        rtol=1e-4,
        atol=1e-5,
        on_demand=True,
        pinned="requirements_torch.txt",
    ),
    Script("stablehlo_iree", "iree-base-compiler", rtol=1e-4, atol=1e-5, on_demand=True),
    Suite(
        "brax",
        "brax",
        modules=tuple(f"{name}_test.py" for name in BRAX_MODULES),
        on_demand=True,
    ),
    # A part of the modules: all of them take hours.
    Suite("blackjax", "blackjax", tests="tests", modules=BLACKJAX_MODULES, on_demand=True),
    # Ignored: modules that need tensorflow.
    Suite(
        "dm_pix",
        "dm_pix",
        ignored=tuple(
            f"_src/{name}_test.py"
            for name in ("augment", "color_conversion", "depth_and_space", "metrics", "patch")
        ),
        on_demand=True,
    ),
    # Ignored: modules that compile for hours (layers), and a module that needs tensorflow.
    Suite(
        "dm-haiku",
        "haiku",
        ignored=(
            "_src/flax",
            "_src/integration",
            "_src/nets",
            *(f"_src/{name}_test.py" for name in HAIKU_LAYERS),
        ),
        on_demand=True,
    ),
    Suite("e3nn-jax", "e3nn_jax", tests="tests", modules=E3NN_MODULES, on_demand=True),
    # Ignored: folders with modules of the same names, and modules that need tensorflow.
    Suite(
        "flax",
        "flax",
        tests="tests",
        ignored=("linen", "nnx", "io_test.py", "tensorboard_test.py"),
        part="core_tests",
        on_demand=True,
    ),
    Suite("flax", "flax", tests="tests/linen", part="linen_tests", on_demand=True),
    Suite("flax", "flax", tests="tests/nnx", part="nnx_tests", on_demand=True),
    Suite("gpjax", "gpjax", tests="tests", modules=GPJAX_MODULES, on_demand=True),
    Suite("grain", "grain", modules=GRAIN_MODULES, on_demand=True),
    Suite("jmp", "jmp", on_demand=True),
    # Ignored: modules that jax 0.12 and the installed flax cannot import, and examples.
    Suite(
        "jraph",
        "jraph",
        ignored=("_src/utils_test.py", "experimental/sharded_graphnet_test.py", "ogb_examples"),
        on_demand=True,
    ),
    Suite(
        "keras",
        "keras",
        modules=KERAS_MODULES,
        environment=(("KERAS_BACKEND", "jax"),),
        on_demand=True,
    ),
    Suite(
        "keras",
        "keras",
        modules=tuple(
            f"src/backend/jax/{name}_test.py" for name in ("core", "distribution_lib", "trainer")
        ),
        environment=(("KERAS_BACKEND", "jax"), ("JAX_NUM_CPU_DEVICES", "8")),
        part="device_tests",
        on_demand=True,
    ),
    Suite("mctx", "mctx", on_demand=True),
    Suite(
        "mujoco-mjx",
        "mujoco.mjx",
        modules=tuple(f"_src/{name}_test.py" for name in MJX_MODULES),
        on_demand=True,
    ),
    # Ignored: modules that run for more than 10 minutes (distributions, gof), whose random numbers
    # have no seed (diagnostics), or that need data from the internet or graphviz.
    Suite(
        "numpyro",
        "numpyro",
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
        on_demand=True,
    ),
    Suite("penzai", "penzai", tests="tests/core", on_demand=True),
    Suite("quax", "quax", tests="tests", on_demand=True),
    # Ignored: a module that needs george.
    Suite("tinygp", "tinygp", tests="tests", ignored=("test_george_compat.py",), on_demand=True),
)


def selected(names: list[str]) -> list[Suite | Script]:
    """Return the parts with the given names; if no names are given, all but those on demand.

    Raises:
      ValueError: for an unknown part.
    """
    known = {part.name for part in PARTS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"no part named {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return [p for p in PARTS if (p.name in names if names else not is_on_demand(p))]


def is_on_demand(part: Suite | Script) -> bool:
    """Return True for a part that runs only if it is named."""
    return part.on_demand


def pins(arguments: Sequence[str]) -> list[Path]:
    """Return the files of pinned versions that a command line with ``--only NAME...`` needs.

    The session ``ecosystem`` of nox calls it, so this module needs only the standard library.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", nargs="+", default=[])
    names = parser.parse_known_args(arguments)[0].only
    named = [part for part in PARTS if part.name in names]
    files = [REQUIREMENTS_ON_DEMAND] if any(map(is_on_demand, named)) else []
    pinned = {part.pinned for part in named if isinstance(part, Script) and part.pinned}
    return [REQUIREMENTS, *files, *(HERE / name for name in sorted(pinned))]
