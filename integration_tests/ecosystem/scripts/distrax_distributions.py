"""Distrax: distributions, bijectors and their inverses, a hidden Markov model, a fitted flow."""

import json

import distrax
import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates import jax as tfp

key = jax.random.PRNGKey(0)
logits = jnp.array([0.1, 0.5, -0.3])
low_rank = distrax.DiagPlusLowRankLinear(
    jnp.array([1.0, 2.0]), jnp.array([[0.5], [0.1]]), jnp.array([[0.2], [0.3]])
)
families = {
    "normal": distrax.Normal(0.5, 2.0),
    "gamma": distrax.Gamma(2.0, 1.5),
    "beta": distrax.Beta(2.0, 3.0),
    "von mises": distrax.VonMises(0.3, 2.0),
    "clipped": distrax.ClippedNormal(0.0, 1.0, -0.5, 0.8),
    "quantized": distrax.Quantized(distrax.Logistic(1.0, 2.0), low=-3.0, high=5.0),
    "categorical": distrax.Categorical(logits=logits),
    "greedy": distrax.EpsilonGreedy(logits, 0.1),
    "multinomial": distrax.Multinomial(total_count=5, logits=logits),
    "dirichlet": distrax.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    "low rank": distrax.MultivariateNormalDiagPlusLowRank(
        jnp.array([0.5, -0.5]), jnp.array([1.0, 2.0]), jnp.array([[0.5], [0.1]])
    ),
    "mixture": distrax.MixtureSameFamily(
        distrax.Categorical(logits=logits), distrax.Normal(jnp.arange(3.0), 0.5)
    ),
    "joint": distrax.Joint({"a": distrax.Normal(0.0, 1.0), "b": distrax.Uniform(-1.0, 2.0)}),
    "transformed": distrax.Transformed(distrax.Normal(0.0, 1.0), lambda x: jnp.tanh(2.0 * x - 1.0)),
}
drawn = {}
for name, family in families.items():
    value, density = jax.jit(lambda k, f=family: f.sample_and_log_prob(seed=k, sample_shape=2))(key)
    drawn[name] = [jax.tree.leaves(value), density]

bijectors = {
    "lambda": distrax.Lambda(lambda x: jnp.exp(-3.0 * jnp.tanh(x))),
    "spline": distrax.RationalQuadraticSpline(jnp.linspace(-1.0, 1.0, 16), -2.0, 2.0),
    "triangular": distrax.TriangularLinear(jnp.array([[2.0, 0.0], [0.3, 1.5]])),
    "low rank": low_rank,
    "chain": distrax.Chain([distrax.Block(distrax.Sigmoid(), 1), low_rank]),
    "tfp": distrax.as_bijector(tfp.bijectors.ScaleMatvecDiag([2.0, 3.0])),
}
x = jnp.array([[0.3, -0.7], [1.1, 0.2]])
images = {}
for name, bijector in bijectors.items():
    value, determinant = bijector.forward_and_log_det(x)
    back = bijector.inverse(value)
    images[name] = [value, determinant, back]

hmm = distrax.HMM(
    distrax.Categorical(probs=jnp.array([0.6, 0.4])),
    distrax.Categorical(probs=jnp.array([[0.8, 0.2], [0.3, 0.7]])),
    distrax.Normal(jnp.array([-1.0, 1.0]), 0.5),
)
series = jnp.array([-0.8, -1.1, 0.9, 1.2, 0.7])
states, emitted = hmm.sample(seed=key, seq_len=4)

data = jax.random.normal(key, (32, 2)) * jnp.array([1.0, 0.3]) + jnp.array([0.5, -1.0])
mask = jnp.array([True, False])


def flow(parameters):
    """Two coupling layers with a linear conditioner."""

    def layer(m, w):
        def conditioner(y):
            return (y @ w).reshape(*y.shape[:-1], 2, 2)

        def affine(p):
            return distrax.ScalarAffine(shift=p[..., 0], log_scale=0.1 * p[..., 1])

        return distrax.MaskedCoupling(m, conditioner, affine)

    first, second = parameters
    base = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    return distrax.Transformed(base, distrax.Chain([layer(mask, first), layer(~mask, second)]))


@jax.jit
def step(parameters):
    """One step of gradient descent on the negative log-likelihood."""
    loss, slopes = jax.value_and_grad(lambda p: -jnp.mean(flow(p).log_prob(data)))(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slopes), loss


parameters = (0.1 * jnp.ones((2, 4)), -0.1 * jnp.ones((2, 4)))
losses = []
for _ in range(10):
    parameters, loss = step(parameters)
    losses.append(loss)

answer = {
    "drawn": drawn,
    "images": images,
    "divergence": [
        families["normal"].kl_divergence(distrax.Normal(0.0, 1.0)),
        distrax.estimate_kl_best_effort(families["gamma"], distrax.Gamma(3.0, 1.0), key, 20),
        tfp.distributions.kl_divergence(
            distrax.to_tfp(families["normal"]), tfp.distributions.Normal(0.0, 1.0)
        ),
    ],
    "hidden": [*hmm.forward(series), *hmm.viterbi(series)[None], states, emitted],
    "ratios": distrax.importance_sampling_ratios(
        families["categorical"], distrax.Categorical(logits=-logits), jnp.array([0, 2])
    ),
    "gradient": jax.grad(lambda a: distrax.multiply_no_nan(a, 2.0) * a)(0.5),
    "losses": losses,
}
print(json.dumps(jax.tree.map(lambda v: np.asarray(v).astype(np.float64).tolist(), answer)))
