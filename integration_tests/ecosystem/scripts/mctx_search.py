"""mctx: tree search by MuZero's and Gumbel's policies on a small game."""

import json

import jax
import jax.numpy as jnp
import mctx

rewards = jnp.array([[0.1, 0.5, -0.2], [0.3, -0.4, 0.9], [0.0, 0.2, 0.4], [1.0, -1.0, 0.3]])


def recurrent(params, key, action, state):
    reward = rewards[state, action]
    state = (state * 3 + action + 1) % 4
    output = mctx.RecurrentFnOutput(
        reward=reward,
        discount=jnp.full_like(reward, 0.9),
        prior_logits=jnp.sin(jnp.arange(3.0) + state[:, None]),
        value=jnp.cos(1.0 * state),
    )
    return output, state


state = jnp.arange(4)
root = mctx.RootFnOutput(prior_logits=jnp.zeros((4, 3)), value=jnp.zeros(4), embedding=state)
results = {}
for name in ("muzero_policy", "gumbel_muzero_policy"):
    policy = getattr(mctx, name)
    output = jax.jit(
        lambda key, p=policy: p(
            params=(), rng_key=key, root=root, recurrent_fn=recurrent, num_simulations=24
        )
    )(jax.random.key(0))
    summary = output.search_tree.summary()
    results[name] = {
        "actions": output.action.tolist(),
        "weights": output.action_weights.tolist(),
        "value": summary.value.tolist(),
        "visits": summary.visit_counts.tolist(),
    }
print(json.dumps(results))
