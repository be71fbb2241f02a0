"""The device: what may be chosen, what children inherit, and that one thread is given back."""

import os

import pytest

from diorama import InputError
from diorama.core import device


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch):
    monkeypatch.setenv("DIORAMA_DEVICE", "cpu")


def test_a_choice_holds_and_is_inherited():
    device.choose("cpu")
    assert device.current() == "cpu" and os.environ["DIORAMA_DEVICE"] == "cpu"


def test_auto_is_resolved_to_a_device_that_exists():
    torch = pytest.importorskip("torch")
    device.choose("auto")
    assert torch.zeros(1, device=device.current()).sum() == 0


@pytest.mark.parametrize("name", ["gpu", "", "cpu0"])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(InputError, match="unknown device"):
        device.choose(name)
    assert device.current() == "cpu"


def test_a_device_that_is_not_there_is_refused():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(InputError, match="not available"):
        device.choose("cuda")


def test_one_thread_is_given_back(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with device.one_thread():
            assert torch.get_num_threads() == 1 and os.environ["OMP_NUM_THREADS"] == "1"
        assert torch.get_num_threads() == 2
        assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ
    finally:
        torch.set_num_threads(before)
