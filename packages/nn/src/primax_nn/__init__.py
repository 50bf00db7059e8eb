"""primax-nn: activations, softmax, attention, block-scaled matrix products, initializers.

Rarely used modules are imported on the first use of one of their names.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import _core_version as _core_version
from primax_core.extend import register_internal_path as _register
from primax_numpy import tanh as tanh

from ._encoding import one_hot as one_hot
from ._gates import gelu as gelu
from ._gates import glu as glu
from ._gates import identity as identity
from ._gates import log_sigmoid as log_sigmoid
from ._gates import mish as mish
from ._gates import sigmoid as sigmoid
from ._gates import silu as silu
from ._gates import soft_sign as soft_sign
from ._gates import softplus as softplus
from ._gates import squareplus as squareplus
from ._gates import swish as swish
from ._logarithms import log1mexp as log1mexp
from ._logarithms import logmeanexp as logmeanexp
from primax_numpy.exponentials import logsumexp as logsumexp
from ._normalizing import log_softmax as log_softmax
from ._normalizing import softmax as softmax
from ._normalizing import standardize as standardize
from ._rectifiers import celu as celu
from ._rectifiers import elu as elu
from ._rectifiers import hard_sigmoid as hard_sigmoid
from ._rectifiers import hard_silu as hard_silu
from ._rectifiers import hard_swish as hard_swish
from ._rectifiers import hard_tanh as hard_tanh
from ._rectifiers import leaky_relu as leaky_relu
from ._rectifiers import relu as relu
from ._rectifiers import relu6 as relu6
from ._rectifiers import selu as selu
from ._rectifiers import sparse_plus as sparse_plus
from ._rectifiers import sparse_sigmoid as sparse_sigmoid

if TYPE_CHECKING:
    from . import example_libraries as example_libraries
    from . import initializers as initializers
    from ._attention import dot_product_attention as dot_product_attention
    from ._scaled import BlockScaleConfig as BlockScaleConfig
    from ._scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
    from ._scaled import scaled_dot_general as scaled_dot_general
    from ._scaled import scaled_matmul as scaled_matmul

__version__ = "0.1.0"

# Errors and jaxprs show the caller's line, not one of this package.
_register(__path__[0])

_MODULES: dict[str, tuple[str, ...]] = {
    "example_libraries": (),
    "initializers": (),
    "_attention": ("dot_product_attention",),
    "_scaled": (
        "BlockScaleConfig",
        "get_scaled_dot_general_config",
        "scaled_dot_general",
        "scaled_matmul",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in (*names, module)}


def __getattr__(name: str) -> _Any:
    module_name = _MODULE_OF.get(name)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(f".{module_name}", __name__)
    value = globals()[name] = module if name == module_name else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF} - {"TYPE_CHECKING"})
