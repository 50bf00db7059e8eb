"""Vector quantization and k-means clustering."""

from ._vq import kmeans as kmeans, kmeans2 as kmeans2, vq as vq, whiten as whiten
