"""MaxText on eight CPU devices: steps of training, with parameters divided among four and two."""

import importlib.resources
import json
import logging
import re
import sys
import tempfile

import jax

jax.config.update("jax_num_cpu_devices", 8)
OPTIONS = {
    "run_name": "small",
    "dataset_type": "synthetic",
    "steps": 5,
    "enable_checkpointing": False,
    "hardware": "cpu",
    "skip_jax_distributed_system": True,
    "attention": "dot_product",
    "dtype": "float32",
    "matmul_precision": "highest",
    "per_device_batch_size": 1,
    "max_target_length": 64,
    "vocab_size": 256,
    "base_emb_dim": 64,
    "base_num_query_heads": 4,
    "base_num_kv_heads": 4,
    "head_dim": 16,
    "base_mlp_dim": 128,
    "base_num_decoder_layers": 2,
    "ici_fsdp_parallelism": 4,
    "ici_tensor_parallelism": 2,
    "log_config": False,
    "enable_tensorboard": False,
    "enable_goodput_recording": False,
    "monitor_goodput": False,
}
STEP = re.compile(
    r"completed step: .*, loss: (?P<loss>[\d.]+),.*perplexity: (?P<perplexity>[\d.]+)"
)


class Steps(logging.Handler):
    """Collects the loss and the perplexity of each step from the log."""

    def __init__(self):
        super().__init__()
        self.values = []

    def emit(self, record):
        match = STEP.search(record.getMessage())
        if match:
            self.values.append([float(match["loss"]), float(match["perplexity"])])


def main():
    """Train, and print what the log says of each step."""
    from maxtext.trainers.pre_train import train

    steps = Steps()
    logger = logging.getLogger("absl")
    logger.addHandler(steps)
    logger.setLevel(logging.INFO)
    base = importlib.resources.files("maxtext") / "configs" / "base.yml"
    with tempfile.TemporaryDirectory() as folder:
        options = [f"{name}={value}" for name, value in OPTIONS.items()]
        train.main([sys.argv[0], str(base), f"base_output_directory={folder}", *options])
    print(json.dumps({"devices": len(jax.devices()), "steps": steps.values}))


if __name__ == "__main__":
    main()
