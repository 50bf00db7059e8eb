"""Bytecode of TPU kernels: modules in the dialects of Mosaic, as ``tpu_custom_call`` reads them."""

from __future__ import annotations

from io import BytesIO

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _tpu_ext

from .._runtime.jaxlib_versions import JAXLIB_VERSION
from .context import make_context


def mosaic_bytecode(text: str, *, version: int | None = None) -> bytes:
    """The bytecode of a TPU kernel.

    It is the ``body`` of the configuration of a call of ``tpu_custom_call``.

    Args:
      text: an MLIR module in the dialects ``tpu``, ``vector``, ``memref``, ``arith``, ``math``,
        ``scf`` and ``func``.
      version: the version of the format. By default one that the plugins of the last months read
        too, not the newest of this jaxlib.

    Returns:
      Bytes.

    Raises:
      ValueError: if the text cannot be parsed or verified; the message has the line. Or if this
        jaxlib does not write the version.
    """
    if version is None:
        version = 11 if JAXLIB_VERSION < (0, 11) else 15
    context = make_context()
    _tpu_ext.register_dialect(context)
    context.allow_unregistered_dialects = True  # the serialized operations are in one
    with context, ir.Location.unknown(context):
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as e:
            raise ValueError(f"the text of a TPU kernel is not valid: {e}") from e
        serialize = f"builtin.module(mosaic-serde{{serialize=true target-version={version}}})"
        try:
            passmanager.PassManager.parse(serialize).run(module.operation)
        except ir.MLIRError as e:
            raise ValueError(
                f"a TPU kernel cannot be written in version {version} of the format: {e}"
            ) from e
        data = BytesIO()
        module.operation.write_bytecode(data, desired_version=0)
    return data.getvalue()
