"""Reinforcement learning on a grid world

An agent learns the way through a maze from rewards alone. The environment is a function of arrays,
so many agents learn at once under `vmap`, and the whole of the learning is one compiled function.

Method: Q-learning, Watkins and Dayan, Machine Learning 8 (1992). Dynamic programming gives the best
possible values for comparison.
"""

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

import primax
import primax.numpy as jnp
from primax import lax, random

QUICK = "--quick" in sys.argv
AGENTS, STEPS = (64, 16000) if QUICK else (256, 80000)
DISCOUNT = 0.95
MAZE = """
S.....#...
.##.#.#.#.
.#..#...#.
.#.######.
.#.....#..
.#.###.#.#
...#...#..
.#.#.###.#
.#.#.....#
.#...#.#.G
"""

# %% [markdown]
# ## Environment
#
# The state is the number of a cell. A move into a wall or out of the maze changes nothing. The move
# to the goal has the reward 1, and the agent begins again.

# %%
rows = MAZE.split()
free = jnp.array([[c != "#" for c in row] for row in rows])
height, width = free.shape
goal = jnp.array(height * width - 1)
MOVES = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])


def move(state, action):
    """The next state, the reward, and whether an episode ends."""
    place = jnp.array([state // width, state % width])
    following = jnp.clip(place + MOVES[action], 0, jnp.array([height - 1, width - 1]))
    following = jnp.where(free[following[0], following[1]], following, place)
    state = following[0] * width + following[1]
    done = state == goal
    return state, jnp.where(done, 1.0, 0.0), done


# %% [markdown]
# ## Learning
#
# Each agent has a table of values of actions. It takes the best action, and at times a random one.
# All values begin at 1, the largest possible, so that an agent tries what it does not know. The
# maze is deterministic, so a new value replaces the old one.


# %%
def learn(key):
    def step(carry, key):
        values, state = carry
        explore_key, action_key, tie_key = random.split(key, 3)
        noise = 1e-6 * random.uniform(tie_key, (4,))
        best = jnp.argmax(values[state] + noise)
        explore = random.uniform(explore_key) < 0.1
        action = jnp.where(explore, random.randint(action_key, (), 0, 4), best)
        following, reward, done = move(state, action)
        target = reward + jnp.where(done, 0.0, DISCOUNT * values[following].max())
        values = values.at[state, action].set(target)
        return (values, jnp.where(done, 0, following)), reward

    start = (jnp.ones((height * width, 4)), jnp.array(0))
    (values, _), rewards = lax.scan(step, start, random.split(key, STEPS))
    return values, rewards


values, rewards = primax.jit(primax.vmap(learn))(random.split(random.key(0), AGENTS))

# %% [markdown]
# ## Best values


# %%
def improve(_, best):
    def of_action(state, action):
        following, reward, done = move(state, action)
        return reward + jnp.where(done, 0.0, DISCOUNT * best[following])

    states = jnp.arange(height * width)
    all_actions = primax.vmap(of_action, (None, 0))
    return primax.vmap(all_actions, (0, None))(states, jnp.arange(4)).max(axis=1)


best = lax.fori_loop(0, 100, improve, jnp.zeros(height * width))


@primax.jit
def steps_to_goal(values):
    def step(carry):
        state, count = carry
        return move(state, jnp.argmax(values[state]))[0], count + 1

    unfinished = lambda carry: (carry[0] != goal) & (carry[1] < 100)
    return lax.while_loop(unfinished, step, (jnp.array(0), 0))[1]


shortest = round(float(jnp.log(best[0]) / jnp.log(DISCOUNT))) + 1
lengths = np.asarray(primax.vmap(steps_to_goal)(values))
share = float((lengths == shortest).mean())
print(f"the shortest way has {shortest} moves")
print(f"{share:.0%} of {AGENTS} agents learned it, {(lengths < 100).mean():.0%} reach the goal")
assert share > 0.9

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
shown = np.where(free, np.asarray(values.mean(0).max(axis=1)).reshape(height, width), np.nan)
left.imshow(shown, cmap="viridis")
arrows = np.asarray(MOVES)[np.asarray(values.mean(0).argmax(axis=1))].reshape(height, width, 2)
y, x = np.nonzero(np.asarray(free))
left.quiver(x, y, arrows[y, x, 1], -arrows[y, x, 0], color="white", pivot="mid", scale=22)
left.set(title="values and best actions", xticks=[], yticks=[])
left.set_facecolor("dimgray")
window = STEPS // 20
right.plot(rewards.mean(axis=0).reshape(-1, window).sum(axis=1))
right.set(xlabel=f"time in {window} steps", ylabel="episodes that reach the goal")
right.set_title("mean of all agents")
plt.show()
