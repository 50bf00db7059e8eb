"""RLax: returns, losses of value learning and policy gradients, MPO, an agent on a bandit."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax

key = jax.random.PRNGKey(0)
steps, batch, actions = 5, 3, 4
keys = jax.random.split(key, 8)
rewards = jax.random.normal(keys[0], (steps, batch))
discounts = jnp.full((steps, batch), 0.9).at[2, 1].set(0.0)
values = jax.random.normal(keys[1], (steps + 1, batch))
q_values = jax.random.normal(keys[2], (steps + 1, batch, actions))
logits = jax.random.normal(keys[3], (steps, batch, actions))
taken = jax.random.randint(keys[4], (steps, batch), 0, actions)
rho = jnp.exp(0.3 * jax.random.normal(keys[5], (steps, batch)))

over_batch = {"in_axes": 1, "out_axes": 1}
returns = {
    "lambda": jax.vmap(lambda r, d, v: rlax.lambda_returns(r, d, v, 0.8), **over_batch)(
        rewards, discounts, values[1:]
    ),
    "n step": jax.vmap(lambda r, d, v: rlax.n_step_bootstrapped_returns(r, d, v, 3), **over_batch)(
        rewards, discounts, values[1:]
    ),
    "advantage": jax.vmap(
        lambda r, d, v: rlax.truncated_generalized_advantage_estimation(r, d, 0.95, v), **over_batch
    )(rewards, discounts, values),
    "vtrace": jax.vmap(rlax.vtrace, **over_batch)(values[:-1], values[1:], rewards, discounts, rho),
    "discounted": jax.vmap(rlax.discounted_returns, **over_batch)(rewards, discounts, values[1:]),
}


def of_values(q):
    """Losses of value learning on action values."""
    one = {
        "sarsa": jax.vmap(rlax.sarsa)(q[0], taken[0], rewards[0], discounts[0], q[1], taken[1]),
        "expected": jax.vmap(rlax.expected_sarsa)(
            q[0], taken[0], rewards[0], discounts[0], q[1], jax.nn.softmax(logits[1])
        ),
        "learning": jax.vmap(rlax.q_learning)(q[0], taken[0], rewards[0], discounts[0], q[1]),
        "double": jax.vmap(rlax.double_q_learning)(
            q[0], taken[0], rewards[0], discounts[0], q[1], q[2]
        ),
        "traced": jax.vmap(lambda a, b, c, d, e: rlax.q_lambda(a, b, c, d, e, 0.9), 1, 1)(
            q[:-1], taken, rewards, discounts, q[1:]
        ),
    }
    atoms = jnp.linspace(-2.0, 2.0, 11)
    spread = q[0][..., None] * jnp.linspace(-1.0, 1.0, 11)
    one["categorical"] = jax.vmap(rlax.categorical_q_learning, (None, 0, 0, 0, 0, None, 0))(
        atoms, spread, taken[0], rewards[0], discounts[0], atoms, 0.5 * spread
    )
    quantiles = jnp.swapaxes(spread, 1, 2)
    tau = (jnp.arange(11) + 0.5) / 11
    one["quantile"] = jax.vmap(
        lambda d, a, r, g: rlax.quantile_q_learning(d, tau, a, r, g, d, d, 1.0)
    )(quantiles, taken[0], rewards[0], discounts[0])
    return sum(jnp.sum(jnp.square(v)) for v in one.values()), one


def of_policies(policy):
    """Losses of policy gradients."""
    weights = jnp.ones(steps)
    advantage = returns["advantage"]

    def of_one(p, a, g, r):
        return jnp.stack(
            [
                rlax.policy_gradient_loss(p, a, g, weights),
                rlax.entropy_loss(p, weights),
                rlax.clipped_surrogate_pg_loss(r, g, 0.2),
                rlax.qpg_loss(p, q_values[:-1, 0]),
                rlax.rpg_loss(p, q_values[:-1, 0]),
            ]
        )

    ratio = jax.vmap(jax.vmap(rlax.categorical_importance_sampling_ratios))
    ratios = ratio(policy, logits, taken)
    each = jax.vmap(of_one, 1)(policy, taken, advantage, ratios)
    return jnp.sum(each), each


(_, losses), q_slopes = jax.jit(jax.value_and_grad(of_values, has_aux=True))(q_values)
(_, policies), p_slopes = jax.jit(jax.value_and_grad(of_policies, has_aux=True))(logits + 0.1)

temperature = rlax.LagrangePenalty(jnp.array(1.0), 0.1, False)
mpo = jax.jit(
    lambda q: rlax.mpo_compute_weights_and_temperature_loss(
        sample_axis=0,
        sample_q_values=q,
        temperature_constraint=temperature,
        projection_operator=lambda x: jnp.maximum(x, 1e-6),
    )
)(q_values[:, :, 0])


def agent(_):
    """A learned policy on a bandit with Gaussian rewards."""
    means = jnp.array([0.1, 0.5, 0.9, 0.3])
    optimizer = optax.adam(0.1)

    def step(carry, k):
        policy, state = carry
        first, second = jax.random.split(k)
        chosen = rlax.softmax().sample(first, jnp.tile(policy, (16, 1)))
        reward = means[chosen] + 0.1 * jax.random.normal(second, (16,))

        def loss(p):
            return rlax.policy_gradient_loss(
                jnp.tile(p, (16, 1)), chosen, reward - jnp.mean(reward), jnp.ones(16)
            )

        updates, state = optimizer.update(jax.grad(loss)(policy), state)
        return (optax.apply_updates(policy, updates), state), jnp.mean(reward)

    start = (jnp.zeros(4), optimizer.init(jnp.zeros(4)))
    (policy, _), mean = jax.lax.scan(step, start, jax.random.split(key, 40))
    return policy, mean[::10]


pair = rlax.muzero_pair(-10, 10, 21, rlax.SIGNED_HYPERBOLIC_PAIR)
ends = jnp.linspace(-8.0, 8.0, 5)
answer = {
    "returns": returns,
    "losses": losses,
    "slopes": [jnp.sum(jnp.abs(q_slopes), (1, 2)), jnp.sum(jnp.abs(p_slopes), (1, 2))],
    "policies": policies,
    "mpo": [mpo[0], mpo[1], mpo[2]],
    "agent": jax.jit(agent)(0.0),
    "transforms": [
        rlax.signed_hyperbolic(ends),
        rlax.signed_parabolic(ends),
        pair.apply_inv(pair.apply(ends)),
    ],
    "chosen": [
        rlax.epsilon_greedy(0.3).sample(key, logits[0]),
        rlax.gaussian_diagonal(0.5).sample(key, logits[0]),
        rlax.add_ornstein_uhlenbeck_noise(key, logits[0, 0], logits[1, 0], 0.1, 0.2),
    ],
    "neighbours": dict(rlax.knn_query(logits[0], logits[1], 2)),
}
print(json.dumps(jax.tree.map(lambda v: np.asarray(v).astype(np.float64).tolist(), answer)))
