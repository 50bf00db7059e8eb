"""MuJoCo MJX: a double pendulum and a falling ball with contact, stepped and differentiated."""

import json

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

PENDULUM = """
<mujoco><option timestep="0.01"/><worldbody><body pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0" mass="1" contype="0" conaffinity="0"/>
<body pos="0.4 0 0"><joint type="hinge" axis="0 1 0"/><geom type="capsule" size="0.05"
fromto="0 0 0 0.3 0 0" mass="1" contype="0" conaffinity="0"/></body></body></worldbody></mujoco>"""
BALL = """
<mujoco><worldbody><geom type="plane" size="1 1 0.1"/><body pos="0 0 0.12"><freejoint/>
<geom type="sphere" size="0.1"/></body></worldbody></mujoco>"""


def run(text, steps):
    model = mjx.put_model(mujoco.MjModel.from_xml_string(text))
    step = jax.jit(mjx.step)
    data = mjx.make_data(model)
    trace = []
    for _ in range(steps):
        data = step(model, data)
        trace.append(data.qpos.tolist())
    return trace, model


pendulum, model = run(PENDULUM, 10)
ball, _ = run(BALL, 10)


def reached(velocity):
    data = mjx.make_data(model).replace(qvel=velocity)
    return mjx.step(model, data).qpos.sum()


gradient = jax.jit(jax.jacfwd(reached))(jnp.array([0.1, -0.2]))
print(json.dumps({"pendulum": pendulum[::3], "ball": ball[::3], "gradient": gradient.tolist()}))
