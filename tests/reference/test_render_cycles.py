"""The path tracer against an independent one: Blender's Cycles, where DIORAMA_BPY names a Python that has `bpy`.

Both render the same description of a table-top. Direct light must agree to 5e-4 in the mean, indirect to 1 %.
"""

import math
import os
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("embreex")

from diorama.render import Camera, Instance, RectLight, Stage, mesh, render
from diorama.render.mesh import rotation, scaling, translation

BPY = os.environ.get("DIORAMA_BPY")
pytestmark = pytest.mark.skipif(not BPY, reason="DIORAMA_BPY does not name a Python with bpy (Blender's Cycles)")

SIZE, SAMPLES, BOUNCES = 64, 1024, 4

CYCLES = """
import sys, numpy as np, bpy, mathutils
scene_file, out, size, samples, bounces = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
data = np.load(scene_file)
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.world = bpy.data.worlds.new("dark")
scene.world.use_nodes = True
scene.world.node_tree.nodes["Background"].inputs[1].default_value = 0
scene.render.engine = "CYCLES"
c = scene.cycles
c.device, c.samples, c.use_adaptive_sampling, c.use_denoising = "CPU", samples, False, False
c.pixel_filter_type, c.filter_width = "BOX", 1.0
c.sample_clamp_direct = c.sample_clamp_indirect = c.blur_glossy = c.light_sampling_threshold = 0
c.caustics_reflective = c.caustics_refractive = True
c.max_bounces = c.diffuse_bounces = c.glossy_bounces = bounces
c.min_light_bounces = c.min_transparent_bounces = 64

def material(name):
    m = bpy.data.materials.new(name)
    m.use_nodes = True
    m.node_tree.nodes.clear()
    return m, m.node_tree.nodes, m.node_tree.links

def surface(name, colour, f0, alpha):
    m, nodes, links = material(name)
    output, diffuse, glossy, add = (nodes.new("ShaderNode" + n) for n in
        ("OutputMaterial", "BsdfDiffuse", "BsdfAnisotropic", "AddShader"))
    diffuse.inputs["Color"].default_value = (*colour, 1)
    diffuse.inputs["Roughness"].default_value = 0
    glossy.distribution = "GGX"
    glossy.inputs["Color"].default_value = (f0, f0, f0, 1)
    glossy.inputs["Roughness"].default_value = alpha ** 0.5
    links.new(diffuse.outputs[0], add.inputs[0])
    links.new(glossy.outputs[0], add.inputs[1])
    links.new((add if f0 > 0 else diffuse).outputs[0], output.inputs[0])
    return m

def emitter(radiance):
    m, nodes, links = material("lamp")
    output, emission, dark, mix, geometry = (nodes.new("ShaderNode" + n) for n in
        ("OutputMaterial", "Emission", "Emission", "MixShader", "NewGeometry"))
    emission.inputs[0].default_value, emission.inputs[1].default_value = (*radiance, 1), 1
    dark.inputs[1].default_value = 0
    links.new(geometry.outputs["Backfacing"], mix.inputs[0])
    links.new(emission.outputs[0], mix.inputs[1])
    links.new(dark.outputs[0], mix.inputs[2])
    links.new(mix.outputs[0], output.inputs[0])
    m.cycles.emission_sampling = "FRONT"
    return m

def put(name, vertices, faces, matrix, paint, normals=None):
    me = bpy.data.meshes.new(name)
    me.from_pydata(vertices.tolist(), [], faces.tolist())
    if normals is not None:
        me.polygons.foreach_set("use_smooth", [True] * len(faces))
        me.normals_split_custom_set_from_vertices(normals.tolist())
    me.materials.append(paint)
    ob = bpy.data.objects.new(name, me)
    ob.matrix_world = mathutils.Matrix(matrix.tolist())
    ob.shadow_terminator_geometry_offset = ob.shadow_terminator_shading_offset = 0
    scene.collection.objects.link(ob)
    return ob

for k in range(int(data["count"])):
    g = lambda n: data[f"{n}{k}"]
    paint = surface(f"m{k}", g("colour").tolist(), *g("specular").tolist())
    put(f"o{k}", g("vertices"), g("faces"), g("matrix"), paint, g("normals"))
corner, u, v, radiance = data["lamp"]
quad = np.array([corner, corner + u, corner + u + v, corner + v])
lamp = put("lamp", quad, np.array([[0, 1, 2, 3]]), np.eye(4), emitter(radiance.tolist()))
lamp.visible_camera = False
cam = bpy.data.cameras.new("camera")
cam.sensor_fit, cam.angle = "VERTICAL", float(data["fov"])
cam.angle_y = float(data["fov"])
ob = bpy.data.objects.new("camera", cam)
ob.matrix_world = mathutils.Matrix(data["camera"].tolist())
scene.collection.objects.link(ob)
scene.camera = ob
r = scene.render
r.resolution_x = r.resolution_y = size
r.resolution_percentage = 100
r.film_transparent = True
r.image_settings.file_format, r.image_settings.color_depth, r.image_settings.color_mode = "OPEN_EXR", "32", "RGB"
scene.view_settings.view_transform = "Raw"
r.filepath = out + ".exr"
bpy.ops.render.render(write_still=True)
image = bpy.data.images.load(out + ".exr")
image.colorspace_settings.name = "Non-Color"
pixels = np.array(image.pixels[:], np.float32).reshape(size, size, -1)[::-1, :, :3]
np.save(out, pixels)
"""


def table(specular: tuple[float, float] | None) -> Stage:
    library = {"sheet": mesh.plane(), "ball": mesh.sphere(96, 48), "ring": mesh.torus(0.35, 96, 48), "box": mesh.box()}
    instances = [
        Instance("sheet", scaling(8), (0.8, 0.8, 0.8)),
        Instance("ball", translation((0, 0, 1)), (0.75, 0.55, 0.1), specular=specular),
        Instance("ring", translation((-1.7, 0.6, 0.35)), (0.6, 0.15, 0.1), specular=specular),
        Instance("box", translation((1.7, 0.8, 0.6)) @ rotation((0, 0, 1), 0.5) @ scaling(0.6), (0.1, 0.5, 0.2)),
    ]
    lamp = RectLight((2.6, -2.9, 5.0), (-0.3, 0.9, 0.1), (0.7, 0.3, -0.5), (45.0, 30.0, 15.0))
    towards = np.cross(lamp.edge_u, lamp.edge_v)
    if towards @ lamp.corner > 0:  # shine at the table
        lamp = RectLight(lamp.corner, lamp.edge_v, lamp.edge_u, lamp.radiance)
    return Stage(library, instances, Camera((0, -7, 4), (0, 0, 0.7), (0, 0, 1), 30.0), [lamp])


def describe(stage: Stage, path: Path) -> None:
    camera, (lamp,) = stage.camera, stage.lights
    right, up, forward = camera.basis()
    pose = np.eye(4)
    pose[:3] = np.stack([right, up, -forward, camera.eye], 1)
    arrays = {"count": len(stage.instances), "camera": pose, "fov": math.radians(camera.fov_degrees)}
    arrays["lamp"] = np.array([lamp.corner, lamp.edge_u, lamp.edge_v, lamp.radiance])
    for k, instance in enumerate(stage.instances):
        solid = stage.library[instance.mesh]
        arrays |= {f"vertices{k}": solid.vertices, f"faces{k}": solid.faces, f"normals{k}": solid.normals}
        arrays |= {f"matrix{k}": instance.transform, f"colour{k}": np.array(instance.colour)}
        arrays[f"specular{k}"] = np.array(instance.specular or (0.0, 1.0))
    np.savez(path, **arrays)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cycles")


@cache
def both(specular: tuple[float, float] | None, bounces: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The image of Cycles and ours."""
    stage = table(specular)
    describe(stage, folder / "scene.npz")
    arguments = [str(folder / "scene.npz"), str(folder / "image"), str(SIZE), str(SAMPLES), str(bounces)]
    done = subprocess.run([str(BPY), "-c", CYCLES, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return np.load(folder / "image.npy"), render(stage, SIZE, SIZE, SAMPLES, bounces)["image"]


def bias(reference: np.ndarray, ours: np.ndarray) -> float:
    return float((ours.astype(float) - reference).sum() / reference.sum(dtype=float))


@pytest.mark.parametrize("specular", [None, (0.2, 0.15)])
def test_direct_light_agrees(specular, folder):
    reference, ours = both(specular, 0, folder)
    print("direct", specular, bias(reference, ours), np.abs(ours - reference).mean() / reference.mean())
    assert abs(bias(reference, ours)) <= 5e-4


@pytest.mark.parametrize("specular", [None, (0.2, 0.15)])
def test_indirect_light_agrees(specular, folder):
    reference, ours = (
        full - direct for full, direct in zip(both(specular, BOUNCES, folder), both(specular, 0, folder), strict=True)
    )
    print("indirect", specular, bias(reference, ours), np.abs(ours - reference).mean() / reference.mean())
    assert abs(bias(reference, ours)) <= 1e-2
