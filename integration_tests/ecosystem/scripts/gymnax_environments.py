"""gymnax: rollouts of environments, vectorized and compiled."""

import json

import gymnax
import jax
import jax.numpy as jnp

results = {}
for name in ("CartPole-v1", "Pendulum-v1", "MountainCar-v0", "Breakout-MinAtar", "Catch-bsuite"):
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

    sums, rewards, dones = jax.jit(jax.vmap(rollout))(jax.random.split(jax.random.key(0), 4))
    results[name] = [
        sums.mean(1).tolist(), rewards.sum(1).tolist(), dones.sum(1).tolist(),
    ]  # fmt: skip
print(json.dumps(results))
