"""Renderer: toon birds, composites and path-traced table-tops per second on two cores, memory, against a peer.

Two processes of one thread each; rates are summed. The peer renders the same stages, without anti-aliasing or outline,
with embreex's Python interface and numpy shading. `--json` prints the figures alone; `--frames N` sets the length of
the memory test (0 skips it). The light sampler of before and today's are compared at equal error; `--reference N` sets the
paths per pixel of their reference (0 skips it), and `--samplers` measures only that, kept as render_samplers.md.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._print import save
from diorama.render import Camera, Instance, Mesh, PointLight, RectLight, Stage, mesh, render, toon_image, toon_layers
from diorama.render.mesh import rotation, scaling, translation
from diorama.worlds.birds.birds import Birds

Triple = tuple[float, float, float]
PROCESSES, SECONDS, STAGES = 2, 4.0, 12
YELLOW, GREY, WHITE, BLACK = (1.0, 1.0, 0.0), (2 / 3, 2 / 3, 2 / 3), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)


@cache
def library() -> dict[str, Mesh]:
    """Own meshes with the triangle counts of the published parts: body 2 × 15,872, large eye 15,872, others fewer."""
    turn = rotation((1, 0, 0), -math.pi / 2)
    return {
        "fine": mesh.flat(mesh.sphere(128, 63)),
        "small": mesh.sphere(32, 16),
        "tube": mesh.flat(mesh.cylinder(63)),
        "beak": mesh.flat(mesh.transform(mesh.revolve([(1 - t, 4 * t) for t in np.linspace(0, 1, 41)], 64), turn)),
        "box": mesh.box(),
        "cone": mesh.transform(mesh.cone(12), turn),
        "capsule": mesh.transform(mesh.capsule(2.0, 12, 6), turn),
    }


def on_sphere(r: float, p: float, q: float) -> Triple:
    return (r * math.sin(p) * math.cos(q), -r * math.sin(q), r * math.cos(p) * math.cos(q))


def bird_stage(seed: int, things: int = 34) -> Stage:
    """A bird of 50,000 to 82,000 triangles before `things` background objects."""
    random = np.random.default_rng(seed)
    parts: list[Instance] = []

    def add(name: str, at: Triple, size: float | Triple, colour: Triple, layer: str, part: int) -> None:
        matrix = translation(at) @ scaling(size)
        parts.append(Instance(name, matrix, colour, object=0, part=part, layer=layer))

    add("fine", (0, 4, 0), (27, 26, 50), GREY, "body", 0)
    add("fine", (0, 34, 42), 20, GREY, "body", 0)
    add("beak", (0, 35, 60), 8, YELLOW, "beak", 1)
    for side in (-1, 1):
        add("fine" if seed % 3 == 0 else "small", (side * 10, 45, 56), 5, WHITE, "eye", 2)
        add("small", (side * 10, 45, 61), 2, BLACK, "eye", 2)
        add("tube", (side * 15, -40, 0), (2, 2, 20), YELLOW, "foot", 3)
        add("small", (side * 30, 5, 0), (30, 4, 16), (1.0, 0.0, 0.0), "wing", 4)
    for k in (-1, 0, 1):
        add("small", (k * 10, 8, -60), (6, 6, 20), (0.0, 0.0, 1.0), "tail", 5)
    for k in range(things):
        place = translation(on_sphere(float(random.integers(100, 201)), *random.uniform(0, 2 * math.pi, 2)))
        matrix = place @ rotation(random.normal(size=3), random.uniform(0, 6)) @ scaling(random.uniform(4, 14, 3))
        name = str(random.choice(["small", "box", "cone", "capsule", "tube"]))
        parts.append(Instance(name, matrix, tuple(random.random(3)), object=1 + k, part=10 + k, layer=f"thing{k}"))
    distance = float(random.integers(220, 401))
    x, y, _ = on_sphere(distance, *random.uniform(0, 2 * math.pi, 2))
    light = PointLight(on_sphere(distance, *random.uniform(0, 2 * math.pi, 2)), (4.0, 4.0, 4.0))
    return Stage(library(), parts, Camera((x, y, distance), (0, 0, 0), (0, 1, 0), 40.0), [light])


def table_stage() -> Stage:
    things = [
        Instance("sheet", scaling(8), (0.8, 0.8, 0.8), object=1),
        Instance("ball", translation((0, 0, 1)), (0.75, 0.55, 0.1), object=2),
        Instance("ring", translation((-1.7, 0.6, 0.35)), (0.7, 0.15, 0.1), object=3),
        Instance("box", translation((1.7, 0.8, 0.6)) @ scaling(0.6), (0.1, 0.5, 0.2), object=4),
    ]
    solids = {"sheet": mesh.plane(), "ball": mesh.sphere(), "ring": mesh.torus(), "box": mesh.box()}
    lamp = RectLight((2.6, -2.9, 5.0), (0.7, 0.3, -0.5), (-0.3, 0.9, 0.1), (45.0, 45.0, 45.0))
    return Stage(solids, things, Camera((0, -7, 4), (0, 0, 0.7), (0, 0, 1), 38.0), [lamp])


# The jobs; each returns a function that does one unit of work at every call.


def birds(first: int, size: int, samples: int) -> Callable[[], object]:
    stages = cycle([bird_stage(first + k) for k in range(STAGES)])
    return lambda: toon_image(next(stages), size, size, samples)


def worlds(first: int, size: int, samples: int) -> Callable[[], object]:
    """Frames of the `birds` world as a user gets them: own meshes, image, part map, depth, boxes."""
    world = Birds(size, antialias=samples > 1)
    scenes = cycle([world.sample(np.random.default_rng(first + k)) for k in range(100)])
    return lambda: world.render([next(scenes)])


def layer_sets(first: int, size: int, samples: int) -> Callable[[], object]:
    stages = cycle([bird_stage(first + k) for k in range(STAGES)])
    return lambda: toon_layers(next(stages), size, size, samples)


def composites(first: int, size: int, samples: int) -> Callable[[], object]:
    names = ("beak", "eye", "foot", "tail", "wing")
    drops = [[name for i, name in enumerate(names) if bits >> i & 1] for bits in range(32)]
    drops += [[f"thing{k}"] for k in range(17)]
    cached = [toon_layers(bird_stage(first + k), size, size, samples) for k in range(STAGES)]
    work = cycle([(layers, drop) for layers in cached for drop in drops])

    def one() -> object:
        layers, drop = next(work)
        return layers.composite(drop)

    return one


def tables(first: int, size: int, samples: int) -> Callable[[], object]:
    stage = table_stage()
    return lambda: render(stage, size, size, samples, bounces=5, seed=first)


def peer(first: int, size: int, samples: int) -> Callable[[], object]:
    stages = cycle([bird_stage(first + k) for k in range(STAGES)])
    return lambda: peer_image(next(stages), size)


def peer_image(stage: Stage, size: int) -> dict[str, np.ndarray]:
    """The same layers, without the outline, by embreex's Python interface: one mesh, one ray per pixel, numpy."""
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    # plain float32 arrays: going through Mesh, which copies and checks, would slow the peer down
    solids = [stage.library[i.mesh] for i in stage.instances]
    matrices = [np.asarray(i.transform, np.float32) for i in stage.instances]
    vertices = np.concatenate([s.vertices @ m[:3, :3].T + m[:3, 3] for s, m in zip(solids, matrices, strict=True)])
    starts = np.cumsum([0, *(len(s.vertices) for s in solids[:-1])])
    faces = np.concatenate([s.faces + np.int32(start) for s, start in zip(solids, starts, strict=True)])
    normals = np.concatenate([s.normals for s in solids])
    owner = np.repeat(np.arange(len(solids)), [len(s.faces) for s in solids])
    scene = EmbreeScene()
    TriangleMesh(scene, vertices, faces)
    right, up, forward = stage.camera.basis()
    y, x = (np.mgrid[:size, :size].reshape(2, -1) + 0.5) / size * 2 - 1
    tangent = math.tan(math.radians(stage.camera.fov_degrees) / 2)
    rays = forward + x[:, None] * tangent * right - y[:, None] * tangent * up
    eye = np.array(stage.camera.eye, np.float32)
    hits = scene.run(np.tile(eye, (size * size, 1)), rays.astype(np.float32), output=True)
    face = hits["primID"]
    found = face >= 0
    corners = faces[face[found]]
    u, v = hits["u"][found, None], hits["v"][found, None]
    smooth = (1 - u - v) * normals[corners[:, 0]] + u * normals[corners[:, 1]] + v * normals[corners[:, 2]]
    turns = np.linalg.inv(np.array(matrices)[:, :3, :3])[owner[face[found]]]
    normal = np.einsum("nji,nj->ni", turns, smooth)
    position = eye + hits["tfar"][found, None] * rays[found]
    (lamp,) = (light for light in stage.lights if isinstance(light, PointLight))
    towards = np.array(lamp.position) - position
    distance = np.linalg.norm(towards, axis=1)
    cosine = (normal * towards).sum(1) / distance / np.linalg.norm(normal, axis=1)
    step = np.array([0.0, 0.2, 0.4])[np.clip(((cosine / 2 + 0.5) * 3).astype(int), 0, 2)]
    colours = np.array([i.colour for i in stage.instances])[owner[face[found]]]
    linear = np.clip(colours * (0x88 / 255 + 4 * step * np.clip(1 - distance / 800, 0, 1))[:, None], 0, 1)
    image = np.tile(np.array([0x55, 0x55, 0x99], np.uint8), (size * size, 1))
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    image[found] = (encoded * 255 + 0.5).astype(np.uint8)
    ids = np.full((2, size * size), -1, np.int32)
    labels = np.array([(i.object, i.part) for i in stage.instances])
    ids[:, found] = labels[owner[face[found]]].T
    return {"image": image.reshape(size, size, 3), "object": ids[0], "part": ids[1], "depth": hits["tfar"]}


JOBS = {job.__name__: job for job in (birds, worlds, layer_sets, composites, tables, peer)}


def _measure(job: str, first: int, size: int, samples: int, ready: object, rates: object) -> None:
    one = JOBS[job](first, size, samples)
    for _ in range(3):
        one()
    ready.wait()  # type: ignore[attr-defined]
    count, begin, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < SECONDS:
        one()
        count += 1
    used = time.process_time() - cpu
    rates.put((count / (time.perf_counter() - begin), count / used))  # type: ignore[attr-defined]


def rate(job: str, size: int, samples: int = 1) -> tuple[float, float]:
    """Units per second of wall clock, and per second of CPU time, of all processes together."""
    context = get_context("spawn")
    ready, rates = context.Barrier(PROCESSES), context.Queue()
    workers = [
        context.Process(target=_measure, args=(job, 100 * k, size, samples, ready, rates)) for k in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    measured = [rates.get(timeout=600) for _ in workers]
    for worker in workers:
        worker.join()
    wall, cpu = zip(*measured, strict=True)
    return sum(wall), sum(cpu)


def memory_growth(frames: int) -> float:
    """Megabytes of resident memory gained over `frames` frames after a tenth as many: new stages, meshes and layers."""
    before = 0.0
    for k in range(frames + frames // 10):
        if k == frames // 10:
            before = _resident()
        stage = table_stage()
        solid = mesh.cylinder(8, top=1 + k / frames)
        stage = Stage({**stage.library, "new": solid}, [*stage.instances, Instance("new")], stage.camera, stage.lights)
        render(stage, 16, 16, 1, bounces=0)
        toon_layers(stage, 32, 32).composite([""])
    return _resident() - before


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures alone")
    parser.add_argument("--frames", type=int, default=20000, help="frames of the memory test")
    parser.add_argument("--reference", type=int, default=4096, help="paths per pixel that samplers are compared with")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/render.md")
    parser.add_argument("--samplers", action="store_true", help="compare the samplers only")
    options = parser.parse_args()
    if options.samplers:
        from benchmarks._samplers import figures as samplers

        load = os.getloadavg()[0]
        found = {name: float(f"{value:.4g}") for name, value in samplers(options.reference).items()}
        print(json.dumps(found, indent=None if options.json else 1))
        if options.save:
            remark = f" The load was {load:.1f} before: times are CPU seconds, and ratios say more than they."
            save("render_samplers", found, ("numpy", "numba", "embreex"), "render --samplers", remark)
        return
    stages = [bird_stage(k) for k in range(STAGES)]
    triangles = [sum(len(s.library[i.mesh].faces) for i in s.instances) for s in stages]
    figures: dict[str, float] = {"triangles_mean": float(np.mean(triangles))}

    def note(name: str, value: float) -> None:
        figures[name] = round(value, 3)
        print(f"{name} {value:.4g}", file=sys.stderr)

    plan = [("birds", size, samples) for size in (128, 256) for samples in (1, 5)]
    plan += [("worlds", size, samples) for size in (128, 256) for samples in (1, 5)]
    plan += [("layer_sets", 128, 1), ("layer_sets", 128, 5), ("composites", 128, 1), ("composites", 128, 5)]
    plan += [("tables", 256, 32), ("peer", 128, 1), ("peer", 256, 1)]
    for job, size, samples in plan:
        wall, cpu = rate(job, size, samples)
        note(f"{job}_{size}px_{samples}spp_per_s", wall)
        note(f"{job}_{size}px_{samples}spp_per_cpu_s", cpu)
    for size in (128, 256):
        ratio = figures[f"birds_{size}px_1spp_per_cpu_s"] / figures[f"peer_{size}px_1spp_per_cpu_s"]
        note(f"ratio_to_embreex_numpy_{size}px", ratio)
    if options.reference:
        from benchmarks._samplers import figures as samplers

        for name, value in samplers(options.reference).items():
            note(name, value)
    if options.frames:
        note(f"memory_growth_mb_{options.frames}_frames", memory_growth(options.frames))
    print(json.dumps(figures, indent=None if options.json else 1))
    if options.save:
        save("render", figures, ("numpy", "numba", "embreex"))


if __name__ == "__main__":
    main()
