"""TORAX: a short simulation of a tokamak's plasma."""

import json

import numpy as np
import torax
from torax import ToraxConfig

config = {
    "profile_conditions": {}, "plasma_composition": {}, "numerics": {"t_final": 2.0},
    "geometry": {"geometry_type": "circular"}, "neoclassical": {"bootstrap_current": {}},
    "sources": {"generic_current": {}, "generic_heat": {}, "ei_exchange": {}},
    "pedestal": {}, "transport": {"model_name": "constant"},
    "solver": {"solver_type": "linear"}, "time_step_calculator": {"calculator_type": "fixed"},
}  # fmt: skip
tree, history = torax.run_simulation(ToraxConfig.from_dict(config), progress_bar=False)
profiles = tree["profiles"]
print(
    json.dumps(
        {
            name: np.asarray(profiles[name])[-1, ::6].astype(float).tolist()
            for name in ("T_e", "T_i", "psi", "n_e")
        }
    )
)
