"""The command `diorama lab`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from diorama.streams import apart


@click.command("lab")
@click.argument("target", metavar="[WORLD|RUN]", default="birds")
@click.option("-M", "--model", "models", multiple=True, metavar="MODEL", help="A model to ask; may be repeated.")
@click.option("-m", "--method", "methods", multiple=True, metavar="METHOD", help="A method to watch; may be repeated.")
@click.option("--scene", default="0", show_default=True, help="The first scene: its number, or its JSON (see Share).")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0: any that is free.")
@click.option("--token", envvar="DIORAMA_LAB_TOKEN", help="A token of your own: pages reconnect after a restart.")
def lab(
    target: str, models: tuple[str, ...], methods: tuple[str, ...], scene: str, port: int, token: str | None
) -> None:
    """Explore one scene: remove a part, drag the lamp, and watch logits, explanations and truth change.

    Without -M and -m, a world is shown with its bundled model if it has one, and a RUN with its own models and methods.
    """
    from diorama.core import device
    from diorama.core.errors import InputError, importing

    device.start_with_one_thread()
    with importing():
        from diorama.lab.server import Lab, bound, serve, shown_scene
    from diorama.lab.targets import opened

    if token is not None and len(token) < 16:
        raise InputError("--token: give at least 16 characters, or leave it out for a random one")
    with apart() as out:
        specs, cases = opened(target, models, methods)
        desk = specs.desk()
        desk.check()
        sock = bound(port)
        given = {"token": token} if token else {}
        made = Lab(desk, specs, Path.cwd(), sock.getsockname()[1], cases=cases, first=shown_scene(desk, scene), **given)
        print(f"the lab is at {made.address}", file=out, flush=True)
        print("Ctrl-C ends it", file=sys.stderr, flush=True)
        serve(made, sock)
