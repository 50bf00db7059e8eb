"""Keras on the jax backend: layers, a functional model, training with metrics, saved weights."""

import json
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
x = np.sin(np.arange(64 * 8 * 8.0)).reshape(64, 8, 8, 1).astype("float32")
y = np.arange(64) % 3
inputs = keras.Input((8, 8, 1))
h = layers.Conv2D(4, 3, activation="relu", padding="same")(inputs)
h = layers.BatchNormalization()(h)
h = layers.MaxPooling2D()(h)
h = layers.Dropout(0.2)(layers.Flatten()(h))
model = keras.Model(inputs, layers.Dense(3)(h))
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
evaluated = model.evaluate(x, y, verbose=0)
tokens = np.cos(np.arange(2 * 6 * 8.0)).reshape(2, 6, 8).astype("float32")
attention = layers.MultiHeadAttention(2, 4)(tokens, tokens)
recurrent = [layer(tokens) for layer in (layers.LSTM(5), layers.GRU(5), layers.SimpleRNN(5))]
print(
    json.dumps(
        {
            "losses": history.history["loss"],
            "evaluated": [float(v) for v in evaluated],
            "predicted": model.predict(x[:2], verbose=0).tolist(),
            "attention": ops.convert_to_numpy(attention).sum(-1).tolist(),
            "recurrent": [float(ops.sum(r)) for r in recurrent],
            "parameters": model.count_params(),
        }
    )
)
