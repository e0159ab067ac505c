"""Answers to the exercises of lesson 55, right and wrong."""

import functools

import numpy as np

from cnnlab.lessons.lesson_55 import beta, elastic, elastics, largest, mixing


def elastic_by(**mistake):
    def step(models, centre, gradients, rate, moving_rate):
        new = elastics(models.copy(), centre.copy(), gradients, rate, moving_rate, **mistake)
        models[:], centre[:] = new

    return step


def no_gradient(models, centre, gradients, rate, moving_rate):
    elastic_by()(models, centre, 0 * gradients, rate, moving_rate)


def not_in_place(models, centre, gradients, rate, moving_rate):
    models = models - rate * gradients


def centre_stays(models, centre, gradients, rate, moving_rate):
    models -= moving_rate * (models - centre) + rate * gradients


def one_by_one(models, centre, gradients, rate, moving_rate):
    """Each rank moves the centre before the next one looks: asynchronous, and not this."""
    for x, g in zip(models, gradients, strict=True):
        pull = moving_rate * (x - centre)
        x -= pull + rate * g
        centre += pull


def by_own_degree(n, edges):
    weights = np.eye(n)
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1
    return weights / weights.sum(1, keepdims=True)


def without_itself(n, edges):
    weights = mixed(n, edges)
    np.fill_diagonal(weights, 0)
    return weights


def mixed(n, edges):
    degree, weights = np.bincount(np.ravel(edges), minlength=n), np.zeros((n, n))
    for i, j in edges:
        weights[i, j] = weights[j, i] = 1 / (1 + max(degree[i], degree[j]))
    return weights + np.diag(1 - weights.sum(1))


def too_heavy(n, edges, weight=0.5):
    weights = np.zeros((n, n))
    for i, j in edges:
        weights[i, j] = weights[j, i] = weight
    return weights + np.diag(1 - weights.sum(1))


RIGHT = [
    (beta, lambda n_ranks, moving_rate: moving_rate * n_ranks),
    (largest, lambda rate, curvature: 2 * (2 - rate * curvature) / (4 - rate * curvature)),
    (mixing, mixed),
    (elastic, elastic_by()),
]
WRONG = [
    (beta, lambda n_ranks, moving_rate: moving_rate, "beta("),
    (largest, lambda rate, curvature: (4 - 2 * rate) / (4 - rate), "largest("),
    (largest, lambda rate, curvature: 2 / curvature, "largest("),
    (mixing, by_own_degree, "columns to"),
    (mixing, without_itself, "the rows add up to"),
    (mixing, lambda n, edges: np.full((n, n), 1 / n), "not neighbours"),
    (mixing, lambda n, edges: np.eye(n), "never agree"),
    (mixing, too_heavy, "negative"),
    (mixing, functools.partial(too_heavy, weight=0.2), "negative"),
    (mixing, lambda n, edges: np.ones(n), "should be (2, 2)"),
    (elastic, elastic_by(late=True), "by the new models"),
    (elastic, elastic_by(mean=True), "by the mean"),
    (elastic, elastic_by(ahead=True), "after the step"),
    (elastic, one_by_one, "the centre is off"),
    (elastic, no_gradient, "the models are off"),
    (elastic, not_in_place, "the models have not moved"),
    (elastic, centre_stays, "the centre has not moved"),
]
