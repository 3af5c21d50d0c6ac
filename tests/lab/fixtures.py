"""Fixtures of the lab, for `pytest_plugins = ["tests.lab.fixtures"]`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.lab.lab import Lab


@pytest.fixture(scope="session")
def lab_of_the_session() -> Iterator[Lab]:
    """The hosts behind `lab`; tests take that one, which leaves no traces."""
    with Lab(hosts=2, gpus=4) as lab:
        yield lab


@pytest.fixture
def lab(lab_of_the_session: Lab) -> Iterator[Lab]:
    """gpu01 and gpu02 with four GPUs each, people alice, bob and carol; as new for each test."""
    lab_of_the_session.reset()
    yield lab_of_the_session
    lab_of_the_session.reset()


@pytest.fixture
def fresh_lab() -> Iterator[Callable[..., Lab]]:
    """Makes labs of the test's own, with the arguments of `Lab`, that end with the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Lab(**options))
