"""Training: a network and a recipe in, parameters out. JAX on the CPU, optimised with Optax."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mnist import Mnist, as_input
from networks import (
    BATCH_NORM_EPSILON,
    Conv,
    Dense,
    Depthwise,
    Flatten,
    GlobalAveragePool,
    MaxPool,
    Network,
    has_batch_norm,
    weight_shape,
    with_shapes,
)

BATCH_NORM_MOMENTUM = 0.99


@dataclass(frozen=True)
class Recipe:
    """How long and how hard to train.

    `distortion` scales the random rotation, zoom and shift of the training digits; 0 is none.
    """

    epochs: int
    peak_learning_rate: float
    distortion: float
    batch: int = 128
    weight_decay: float = 1e-4
    seed: int = 1


def fit(network: Network, mnist: Mnist, recipe: Recipe) -> dict:
    """Trains on the 60,000 training digits and returns the parameters as f32 NumPy arrays.

    The test digits are evaluated once, after the last epoch; nothing is chosen by them.
    """
    key, initial_key = jax.random.split(jax.random.key(recipe.seed))
    trained, statistics = _initial(network, initial_key)
    count = len(mnist.train_images)
    steps = count // recipe.batch
    schedule = optax.cosine_onecycle_schedule(
        recipe.epochs * steps, recipe.peak_learning_rate, pct_start=0.2
    )
    optimizer = optax.adamw(schedule, weight_decay=recipe.weight_decay)
    state = optimizer.init(trained)

    @jax.jit
    def step(trained, statistics, state, key, images, labels):
        inputs = _distort(key, images.astype(jnp.float32) / 255, recipe.distortion)

        def loss(trained):
            logits, updated = forward(network, trained, statistics, inputs, training=True)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), updated

        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(trained)
        updates, state = optimizer.update(gradients, state, trained)
        return optax.apply_updates(trained, updates), updated, state, value

    for epoch in range(recipe.epochs):
        started = time.perf_counter()
        key, order_key, distort_key = jax.random.split(key, 3)
        order = np.asarray(jax.random.permutation(order_key, count))
        keys = jax.random.split(distort_key, steps)
        total = 0.0
        for index in range(steps):
            picked = order[index * recipe.batch : (index + 1) * recipe.batch]
            trained, statistics, state, value = step(
                trained,
                statistics,
                state,
                keys[index],
                mnist.train_images[picked],
                mnist.train_labels[picked].astype(np.int32),
            )
            total += float(value)
        seconds = time.perf_counter() - started
        print(f"{network.name}: epoch {epoch + 1}/{recipe.epochs}, "
              f"loss {total / steps:.4f}, {seconds:.0f} s", flush=True)

    parameters = {name: {**trained[name], **statistics.get(name, {})} for name in trained}
    return jax.tree.map(lambda array: np.asarray(array, np.float32), parameters)


def accuracy(network: Network, parameters: dict, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of `images` whose most probable class is the label."""
    statistics = {name: p for name, p in parameters.items() if "mean" in p}

    @jax.jit
    def classify(inputs):
        logits, _ = forward(network, parameters, statistics, inputs, training=False)
        return logits.argmax(1)

    inputs = as_input(images)
    guesses = [np.asarray(classify(inputs[i : i + 1000])) for i in range(0, len(inputs), 1000)]
    return float((np.concatenate(guesses) == labels).mean())


def forward(network: Network, trained: dict, statistics: dict, inputs, training: bool):
    """Logits of a batch of images [n, 28, 28, 1], and the batch statistics moved along.

    The softmax of the last layer is left to the loss.
    """
    x = inputs.reshape(-1, *network.input_shape)
    updated = dict(statistics)
    for layer in network.layers:
        match layer:
            case Conv():
                x = _convolve(x, trained[layer.name]["weight"], layer.stride, layer.padding)
            case Depthwise():
                x = _depthwise(x, trained[layer.name]["weight"], layer.stride, layer.padding)
            case MaxPool(size):
                n, height, width, channels = x.shape
                x = x[:, : height // size * size, : width // size * size]
                x = x.reshape(n, height // size, size, width // size, size, channels).max((2, 4))
            case GlobalAveragePool():
                x = x.mean((1, 2), keepdims=True)
            case Flatten():
                x = x.reshape(x.shape[0], -1)
            case Dense():
                x = x @ trained[layer.name]["weight"].T
        if has_batch_norm(layer):
            x, updated[layer.name] = _normalise(
                x, trained[layer.name], statistics[layer.name], training
            )
        elif hasattr(layer, "name"):
            x = x + trained[layer.name]["bias"]
        if getattr(layer, "activation", None) == "relu":
            x = jax.nn.relu(x)
    return x, updated


def _initial(network: Network, key) -> tuple[dict, dict]:
    """He-normal weights, zero biases; batch norms as the identity."""
    trained, statistics = {}, {}
    for layer, in_shape, _ in with_shapes(network):
        shape = weight_shape(layer, in_shape)
        if not shape:
            continue
        key, own_key = jax.random.split(key)
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        channels = shape[0]
        weight = deviation * jax.random.normal(own_key, shape)
        if has_batch_norm(layer):
            trained[layer.name] = {
                "weight": weight,
                "gamma": jnp.ones(channels),
                "beta": jnp.zeros(channels),
            }
            statistics[layer.name] = {"mean": jnp.zeros(channels), "variance": jnp.ones(channels)}
        else:
            trained[layer.name] = {"weight": weight, "bias": jnp.zeros(channels)}
    return trained, statistics


def _convolve(x, weight, stride: int, padding: int):
    if weight.shape[1] == 1 and stride == 1 and padding == 0:
        return x @ weight[:, 0, 0, :].T
    return jax.lax.conv_general_dilated(
        x,
        weight,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
    )


def _depthwise(x, weight, stride: int, padding: int):
    """Nine shifted products: on a CPU, XLA's grouped convolution takes several times longer."""
    kernel = weight.shape[1]
    x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    rows = (x.shape[1] - kernel) // stride * stride + 1
    columns = (x.shape[2] - kernel) // stride * stride + 1
    return sum(
        x[:, i : i + rows : stride, j : j + columns : stride] * weight[:, i, j]
        for i in range(kernel)
        for j in range(kernel)
    )


def _normalise(x, trained: dict, statistics: dict, training: bool):
    if training:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        moved = {
            "mean": _towards(statistics["mean"], mean),
            "variance": _towards(statistics["variance"], variance),
        }
    else:
        mean, variance, moved = statistics["mean"], statistics["variance"], statistics
    scale = trained["gamma"] / jnp.sqrt(variance + BATCH_NORM_EPSILON)
    return (x - mean) * scale + trained["beta"], moved


def _towards(running, batch):
    return BATCH_NORM_MOMENTUM * running + (1 - BATCH_NORM_MOMENTUM) * jax.lax.stop_gradient(batch)


@partial(jax.vmap, in_axes=(0, 0, None))
def _distort_one(key, image, amount):
    angle, zoom_y, zoom_x, shift_y, shift_x = (
        jax.random.uniform(key, (5,), minval=-1, maxval=1)
        * amount
        * jnp.array([np.radians(12), 0.12, 0.12, 2.0, 2.0])
    )
    centre = 13.5
    y, x = jnp.mgrid[0:28, 0:28] - centre
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    source_y = (cosine * y - sine * x) * (1 + zoom_y) + shift_y + centre
    source_x = (sine * y + cosine * x) * (1 + zoom_x) + shift_x + centre
    return jax.scipy.ndimage.map_coordinates(image, [source_y, source_x], order=1)


def _distort(key, images, amount: float):
    """Each image turned by up to 12 degrees, zoomed by up to 12 % and shifted by up to 2 pixels,
    all times `amount`, and given its channel axis."""
    if amount > 0:
        images = _distort_one(jax.random.split(key, images.shape[0]), images, amount)
    return images[..., None]
