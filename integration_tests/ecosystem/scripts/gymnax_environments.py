"""gymnax: rollouts of all registered environments, vectorized and compiled, and wrappers."""

import json

import gymnax
import jax
import jax.numpy as jnp
from gymnax.wrappers import FlattenObservationWrapper, LogWrapper

results = {}
for name in gymnax.registered_envs:
    if "MNIST" in name:  # it downloads images
        continue
    env, params = gymnax.make(name)

    def rollout(key, env=env, params=params):
        key, start = jax.random.split(key)
        obs, state = env.reset(start, params)

        def step(carry, key):
            obs, state = carry
            first, second = jax.random.split(key)
            action = env.action_space(params).sample(first)
            obs, state, reward, done, _ = env.step(second, state, action, params)
            return (obs, state), (jnp.sum(obs), reward, done)

        return jax.lax.scan(step, (obs, state), jax.random.split(key, 30))[1]

    try:
        sums, rewards, dones = jax.jit(jax.vmap(rollout))(jax.random.split(jax.random.key(0), 4))
    except IndexError as e:  # of one environment
        results[name] = type(e).__name__
        continue
    results[name] = [
        sums.mean(1).tolist(), rewards.sum(1).tolist(), dones.sum(1).tolist(),
    ]  # fmt: skip
env, params = gymnax.make("Catch-bsuite")
env = LogWrapper(FlattenObservationWrapper(env))


@jax.jit
def logged(key):
    obs, state = env.reset(key, params)

    def step(state, key):
        action = env.action_space(params).sample(key)
        obs, state, reward, _, info = env.step(key, state, action, params)
        return state, (
            obs.sum(),
            reward,
            info["returned_episode_returns"],
            info["returned_episode_lengths"],
        )

    return obs, jax.lax.scan(step, state, jax.random.split(key, 25))[1]


obs, rows = logged(jax.random.key(1))
results["wrapped"] = [obs.shape, [row.tolist() for row in rows]]
print(json.dumps(results))
