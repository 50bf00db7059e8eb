"""Fourier, cosine, sine and Hankel transforms under SciPy's names."""

from primax_numpy.fft import fft as fft
from primax_numpy.fft import fft2 as fft2
from primax_numpy.fft import fftfreq as fftfreq
from primax_numpy.fft import fftn as fftn
from primax_numpy.fft import fftshift as fftshift
from primax_numpy.fft import hfft as hfft
from primax_numpy.fft import ifft as ifft
from primax_numpy.fft import ifft2 as ifft2
from primax_numpy.fft import ifftn as ifftn
from primax_numpy.fft import ifftshift as ifftshift
from primax_numpy.fft import ihfft as ihfft
from primax_numpy.fft import irfft as irfft
from primax_numpy.fft import irfft2 as irfft2
from primax_numpy.fft import irfftn as irfftn
from primax_numpy.fft import rfft as rfft
from primax_numpy.fft import rfft2 as rfft2
from primax_numpy.fft import rfftfreq as rfftfreq
from primax_numpy.fft import rfftn as rfftn

from .._fast_lengths import next_fast_len as next_fast_len
from .._fast_lengths import prev_fast_len as prev_fast_len
from ._cosine_sine import dct as dct
from ._cosine_sine import dctn as dctn
from ._cosine_sine import dst as dst
from ._cosine_sine import dstn as dstn
from ._cosine_sine import idct as idct
from ._cosine_sine import idctn as idctn
from ._cosine_sine import idst as idst
from ._cosine_sine import idstn as idstn
from ._hankel import fht as fht
from ._hankel import fhtoffset as fhtoffset
from ._hankel import ifht as ifht
from ._hermitian import hfft2 as hfft2
from ._hermitian import hfftn as hfftn
from ._hermitian import ihfft2 as ihfft2
from ._hermitian import ihfftn as ihfftn
