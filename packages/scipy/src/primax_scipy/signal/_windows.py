"""Window functions.

A window is a vector of ``M`` numbers, computed in double precision and rounded to the default float
dtype. ``sym=True`` makes a symmetric window for filters, ``sym=False`` a periodic one for spectra.
The parameters are Python numbers: they are not differentiated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core.extend import Array, dtypes
from primax_core.typing import ArrayLike

from . import _window_shapes as shapes


def _points(name: str, m: Any) -> int:
    try:
        n = operator.index(m)
    except TypeError:
        raise TypeError(f"{name}: the number of points must be an integer, got {m!r}") from None
    if n < 0:
        raise ValueError(f"{name}: the number of points must not be negative, got {n}")
    return n


def _array(values: Any) -> Array:
    return pnp.asarray(values, dtype=dtypes.default_float())


def _window(name: str, m: Any, sym: bool, *parameters: Any) -> Array:
    shape: Callable[..., Any] = getattr(shapes, name)
    return _array(shapes.sampled(shape, _points(name, m), sym, *parameters))


def boxcar(M: int, sym: bool = True) -> Array:
    """Rectangular window: ones.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in boxcar(4)]
    [1.0, 1.0, 1.0, 1.0]
    """
    return _window("boxcar", M, sym)


def triang(M: int, sym: bool = True) -> Array:
    """Triangular window, whose ends are not zero.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in triang(4)]
    [0.25, 0.75, 0.75, 0.25]
    """
    return _window("triang", M, sym)


def parzen(M: int, sym: bool = True) -> Array:
    """Parzen window: a piecewise cubic.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in parzen(5)]
    [0.016, 0.424, 1.0, 0.424, 0.016]
    """
    return _window("parzen", M, sym)


def bohman(M: int, sym: bool = True) -> Array:
    """Bohman window: the convolution of two half periods of a cosine.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in bohman(5)]
    [0.0, 0.3183, 1.0, 0.3183, 0.0]
    """
    return _window("bohman", M, sym)


def blackman(M: int, sym: bool = True) -> Array:
    """Blackman window of three cosine terms.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in blackman(5)[1:4]]
    [0.34, 1.0, 0.34]
    """
    return _window("blackman", M, sym)


def nuttall(M: int, sym: bool = True) -> Array:
    """Nuttall window of four cosine terms.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in nuttall(5)]
    [0.0004, 0.227, 1.0, 0.227, 0.0004]
    """
    return _window("nuttall", M, sym)


def blackmanharris(M: int, sym: bool = True) -> Array:
    """Blackman-Harris window of four cosine terms.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in blackmanharris(5)]
    [0.0001, 0.2175, 1.0, 0.2175, 0.0001]
    """
    return _window("blackmanharris", M, sym)


def flattop(M: int, sym: bool = True) -> Array:
    """Flat top window of five cosine terms, which preserves amplitudes.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in flattop(5)]
    [-0.0004, -0.0547, 1.0, -0.0547, -0.0004]
    """
    return _window("flattop", M, sym)


def bartlett(M: int, sym: bool = True) -> Array:
    """Bartlett window: a triangle with zeros at both ends.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in bartlett(5)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", M, sym)


def hann(M: int, sym: bool = True) -> Array:
    """Hann window: a raised cosine.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> hann(4, sym=False).tolist()
    [0.0, 0.5, 1.0, 0.5]
    >>> [round(float(v), 4) for v in hann(5)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("hann", M, sym)


def barthann(M: int, sym: bool = True) -> Array:
    """Bartlett-Hann window: the sum of a triangle and a cosine.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in barthann(5)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("barthann", M, sym)


def hamming(M: int, sym: bool = True) -> Array:
    """Hamming window: ``0.54 - 0.46 cos``.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in hamming(5)]
    [0.08, 0.54, 1.0, 0.54, 0.08]
    """
    return _window("hamming", M, sym)


def cosine(M: int, sym: bool = True) -> Array:
    """Half a period of a sine.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in cosine(4)]
    [0.3827, 0.9239, 0.9239, 0.3827]
    """
    return _window("cosine", M, sym)


def lanczos(M: int, sym: bool = True) -> Array:
    """Lanczos window: the main lobe of a sinc function.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in lanczos(5)]
    [0.0, 0.6366, 1.0, 0.6366, 0.0]
    """
    return _window("lanczos", M, sym)


def general_cosine(M: int, a: ArrayLike | Sequence[ArrayLike], sym: bool = True) -> Array:
    """Sum of cosines with coefficients ``a``, all positive at the middle.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      a: the coefficients, a sequence of numbers; the first is that of the constant.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in general_cosine(5, [0.5, 0.5])]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("general_cosine", M, sym, [float(c) for c in a])


def general_hamming(M: int, alpha: float, sym: bool = True) -> Array:
    """Window ``alpha - (1 - alpha) cos``.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      alpha: 0.5 for :func:`hann`, 0.54 for :func:`hamming`.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in general_hamming(5, 0.6)]
    [0.2, 0.6, 1.0, 0.6, 0.2]
    """
    return _window("general_hamming", M, sym, alpha)


def kaiser(M: int, beta: float, sym: bool = True) -> Array:
    """Kaiser window; a larger ``beta`` has lower side lobes and a wider main lobe.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      beta: the shape; 0 gives ones.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in kaiser(4, 5.0)]
    [0.0367, 0.7753, 0.7753, 0.0367]
    """
    return _window("kaiser", M, sym, beta)


def kaiser_bessel_derived(M: int, beta: float, *, sym: bool = True) -> Array:
    """Kaiser-Bessel derived window, for the modified discrete cosine transform.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      beta: the shape, as in :func:`kaiser`.
      sym: must be true.

    Returns:
      A vector ``[M]`` of the default float dtype.

    Raises:
      ValueError: if ``M`` is odd or ``sym`` is false.

    >>> [round(float(v), 4) for v in kaiser_bessel_derived(4, 5.0)]
    [0.1849, 0.9828, 0.9828, 0.1849]
    """
    if not sym:
        raise ValueError("kaiser_bessel_derived: only symmetric windows exist; use sym=True")
    if M < 1:
        return _array([])
    return _array(shapes.kaiser_bessel_derived(_points("kaiser_bessel_derived", M), beta))


def gaussian(M: int, std: float, sym: bool = True) -> Array:
    """Gaussian window with a standard deviation in points.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      std: the standard deviation.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in gaussian(5, 1.0)]
    [0.1353, 0.6065, 1.0, 0.6065, 0.1353]
    """
    return _window("gaussian", M, sym, std)


def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Array:
    """Window ``exp(-|n / sig|^(2 p) / 2)``.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      p: 1 for :func:`gaussian`; 0.5 for :func:`exponential` with ``tau = 2 * sig``.
      sig: the width in points.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in general_gaussian(5, 1.5, 1.0)]
    [0.0183, 0.6065, 1.0, 0.6065, 0.0183]
    """
    return _window("general_gaussian", M, sym, p, sig)


def exponential(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> Array:
    """Exponential window ``exp(-|n - center| / tau)``.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      center: the position of the maximum, by default the middle.
      tau: the decay in points.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    Raises:
      ValueError: if a symmetric window has a center.

    >>> [round(float(v), 4) for v in exponential(5)]
    [0.1353, 0.3679, 1.0, 0.3679, 0.1353]
    """
    if sym and center is not None:
        raise ValueError("exponential: a symmetric window has no center; use sym=False")
    return _window("exponential", M, sym, center, tau)


def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Array:
    """Tukey window: ones between cosine edges, which have a fraction ``alpha`` of the points.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      alpha: 0 gives :func:`boxcar`, 1 gives :func:`hann`.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in tukey(6, 0.5)]
    [0.0, 0.9045, 1.0, 1.0, 0.9045, 0.0]
    """
    return _window("tukey", M, sym, alpha)


def chebwin(M: int, at: float, sym: bool = True) -> Array:
    """Dolph-Chebyshev window with side lobes attenuated by ``at`` decibels.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      at: the attenuation in decibels.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in chebwin(5, 60.0)]
    [0.1876, 0.6862, 1.0, 0.6862, 0.1876]
    """
    return _window("chebwin", M, sym, at)


def taylor(M: int, nbar: int = 4, sll: float = 30, norm: bool = True, sym: bool = True) -> Array:
    """Taylor window: ``nbar`` side lobes of nearly equal height, ``sll`` decibels down.

    Args:
      M: the number of points. Fractions raise TypeError, negative numbers ValueError.
      nbar: the number of side lobes.
      sll: the attenuation in decibels.
      norm: divide by the value in the middle.
      sym: return a symmetric window, otherwise a periodic one.

    Returns:
      A vector ``[M]`` of the default float dtype.

    >>> [round(float(v), 4) for v in taylor(5)]
    [0.3325, 0.772, 1.0, 0.772, 0.3325]
    """
    return _window("taylor", M, sym, nbar, sll, norm)


def dpss(
    M: int, NW: float, Kmax: int | None = None, sym: bool = True, norm: int | str | None = None,
    return_ratios: bool = False,
) -> Any:  # fmt: skip
    """Discrete prolate spheroidal (Slepian) sequences.

    Args:
      M: the number of points.
      NW: half of the bandwidth, at most ``M / 2``.
      Kmax: the number of sequences ``[Kmax, M]``; by default one, as a vector.
      norm: 2 for unit energy, the default if ``Kmax`` is given; ``"approximate"`` for a maximum of
        1 except for a correction at even ``M``; ``"subsample"`` with an interpolated maximum.
      return_ratios: also return the concentrations of energy in the band.

    Raises:
      ValueError: if an argument is out of its range or ``norm`` is unknown.

    >>> [round(float(v), 4) for v in dpss(4, 1.0)]
    [0.5037, 0.9412, 0.9412, 0.5037]
    """
    m = _points("dpss", M)
    count = 1 if Kmax is None else operator.index(Kmax)
    norm = ("approximate" if Kmax is None else 2) if norm is None else norm
    if norm not in (2, "approximate", "subsample"):
        raise ValueError(f"dpss: norm must be 2, 'approximate' or 'subsample', got {norm!r}")
    if m <= 1:
        ones = _array(np.ones(m) if Kmax is None else np.ones((count, m)))
        return (ones, _array(np.ones(count))) if return_ratios else ones
    if not 0 < count <= m or not 0 < NW < m / 2:
        raise ValueError(f"dpss: 0 < Kmax <= M and 0 < NW < M / 2 are needed, got {count}, {NW}")
    n = m if sym else m + 1
    windows, ratios = shapes.dpss(n, NW, count)
    if norm != 2:
        windows = windows / windows.max()
        if n % 2 == 0:
            windows *= _correction(windows[0], n, NW, norm)
    windows = windows if sym else windows[:, :-1]
    out = _array(windows[0] if Kmax is None else windows)
    ratio = _array(ratios[0] if Kmax is None else ratios)
    return (out, ratio) if return_ratios else out


def _correction(window: Any, n: int, nw: float, norm: str) -> float:
    """The factor with which the maximum between the two middle points is 1."""
    if norm == "approximate":
        return float(n**2 / (n**2 + nw))
    spectrum = np.fft.rfft(window)
    shift = -(1 - 1.0 / n) * np.arange(1, n // 2 + 1)
    spectrum[1:] *= 2 * np.exp(-1j * np.pi * shift)
    return float(n / spectrum.real.sum())


_NAMES = {
    "box": "boxcar", "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar",
    "tri": "triang", "triangle": "triang", "par": "parzen", "parz": "parzen", "bman": "bohman",
    "bmn": "bohman", "black": "blackman", "blk": "blackman", "nutl": "nuttall", "nut": "nuttall",
    "blackharr": "blackmanharris", "bkh": "blackmanharris", "flat": "flattop", "flt": "flattop",
    "bart": "bartlett", "brt": "bartlett", "han": "hann", "hanning": "hann", "ham": "hamming",
    "hamm": "hamming", "brthan": "barthann", "bth": "barthann", "halfcosine": "cosine",
    "sinc": "lanczos", "kbd": "kaiser_bessel_derived", "gauss": "gaussian", "gss": "gaussian",
    "general gaussian": "general_gaussian", "general_gauss": "general_gaussian",
    "ggs": "general_gaussian", "general cosine": "general_cosine",
    "general hamming": "general_hamming", "poisson": "exponential", "cheb": "chebwin",
    "tuk": "tukey", "tay": "taylor", "ksr": "kaiser",
}  # fmt: skip
_PLAIN = {
    "boxcar", "triang", "parzen", "bohman", "blackman", "nuttall", "blackmanharris", "flattop",
    "bartlett", "hann", "hamming", "barthann", "cosine", "lanczos", "tukey", "taylor",
    "exponential",
}  # fmt: skip
_PARAMETRIC = {
    "kaiser", "kaiser_bessel_derived", "gaussian", "general_gaussian", "general_cosine",
    "general_hamming", "chebwin", "dpss",
}  # fmt: skip


def get_window(window: str | tuple[Any, ...] | ArrayLike, Nx: int, fftbins: bool = True) -> Array:
    """A window by its name.

    Args:
      window: a name; a tuple of a name and the parameters; or a number, the ``beta`` of `kaiser`.
      Nx: the number of points.
      fftbins: return a periodic window.

    Returns:
      A vector ``[Nx]`` of the default float dtype.

    Raises:
      ValueError: if the name is unknown or needs parameters.

    >>> get_window(("tukey", 1.0), 4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    name, parameters = _named(window)
    if name in _PLAIN | _PARAMETRIC:
        function = globals()[name]
        sym = not fftbins or name == "kaiser_bessel_derived"
        if name == "dpss" and len(parameters) == 1:
            parameters = (*parameters, None)
        out: Array = function(Nx, *parameters, sym=sym)
        return out
    raise ValueError(f"get_window: unknown window {window!r}; use one of {sorted(_PLAIN)}")


def _named(window: Any) -> tuple[str, tuple[Any, ...]]:
    if isinstance(window, (int, float)):
        return "kaiser", (float(window),)
    parts = (window,) if isinstance(window, str) else tuple(window)
    if not parts or not isinstance(parts[0], str):
        raise ValueError(f"get_window: {window!r} is not a name, a tuple or a number")
    name = _NAMES.get(parts[0].lower(), parts[0].lower())
    if name in _PARAMETRIC and len(parts) == 1:
        raise ValueError(
            f"get_window: the window {name!r} needs parameters: pass a tuple, such as "
            f"('{name}', ...)"
        )
    if name in _PLAIN - {"tukey", "taylor", "exponential"} and len(parts) > 1:
        raise ValueError(f"get_window: the window {name!r} has no parameters, got {parts[1:]}")
    return name, parts[1:]
