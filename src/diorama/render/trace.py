"""Rays against triangles: Embree 4, from the `embreex` wheel, called from numba kernels through its C interface.

A packet holds 8 rays and their hits in Embree's layout (RTCRayHit8: 21 rows of 8 words, 64-byte aligned); the row numbers
are below. Kernels get Embree's functions as integer addresses, so that compiled code can be cached on disk. A mesh is given
to Embree once, keyed by its content; a scene of instances lives as long as its `with` block.
"""

# mypy: disable-error-code="no-untyped-def"
import ctypes
import weakref
from collections import OrderedDict
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.check import transforms
from diorama.render.jit import MISSING, MissingPackageError, call_c, inlined, kernel
from diorama.render.mesh import Mesh
from diorama.render.stage import Stage

# Rows of a packet.
ORIGIN, T_NEAR, DIRECTION, TIME, T_FAR, MASK, RAY_ID, FLAGS = 0, 3, 4, 7, 8, 9, 10, 11
NORMAL, U, V, PRIMITIVE, GEOMETRY, INSTANCE, ROWS = 12, 15, 16, 17, 18, 19, 21
NOTHING = 0xFFFFFFFF
CAMERA = 1  # the mask of rays from the eye; instances that the camera does not see lack this bit
FAR = np.float32(1e30)

_MESHES_KEPT = 512


class Embree(NamedTuple):
    """What a kernel needs to trace: addresses of two functions, of their arguments and of the scene."""

    intersect: int
    occluded: int
    coherent: int
    scattered: int
    scene: int


class Packet(NamedTuple):
    """Memory of 8 rays: the words as floats and as integers, (21, 8) each, and which of the 8 are active (−1)."""

    words: NDArray[np.float32]
    codes: NDArray[np.uint32]
    active: NDArray[np.int32]


@kernel
def new_packet():
    """An aligned packet; time, flags and ids zero, every mask open."""
    words = _aligned(ROWS * 8).reshape(ROWS, 8)
    words[:] = 0
    codes = words.view(np.uint32)
    codes[MASK] = NOTHING
    return Packet(words, codes, _aligned(8).view(np.int32))


@kernel
def _aligned(n):
    room = np.empty(n + 16, np.float32)
    skip = (-(room.ctypes.data // 4)) % 16
    return room[skip : skip + n]


@inlined
def set_ray(packet, k, px, py, pz, dx, dy, dz, reach):
    """Ray k of the packet, active."""
    words, codes = packet.words, packet.codes
    words[ORIGIN, k], words[ORIGIN + 1, k], words[ORIGIN + 2, k] = px, py, pz
    words[DIRECTION, k], words[DIRECTION + 1, k], words[DIRECTION + 2, k] = dx, dy, dz
    words[T_NEAR, k], words[T_FAR, k] = 0, reach
    codes[GEOMETRY, k] = codes[INSTANCE, k] = NOTHING
    packet.active[k] = -1


@inlined
def intersect(embree, packet, arguments):
    """Find the nearest hit of every active ray; codes[GEOMETRY] stays NOTHING where there is none."""
    rays = np.intp(packet.words.ctypes.data)
    call_c(embree.intersect, np.intp(packet.active.ctypes.data), embree.scene, rays, arguments)


@inlined
def occluded(embree, packet):
    """Find whether anything lies on every active ray; words[T_FAR] becomes negative where it does."""
    rays = np.intp(packet.words.ctypes.data)
    call_c(embree.occluded, np.intp(packet.active.ctypes.data), embree.scene, rays, embree.scattered)


class Library:
    """Embree's shared library and one device; its functions with their C signatures."""

    def __init__(self) -> None:
        self._c = ctypes.CDLL(_find_library())
        self.device = self.call("rtcNewDevice", b"threads=1,set_affinity=0", result=ctypes.c_void_p)
        self._meshes: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()  # of the table of meshes; Embree itself may be called from several threads
        self._arguments = [_arguments(flags) for flags in (1 << 16, 0)]  # RTC_RAY_QUERY_FLAG_COHERENT, INCOHERENT

    def call(self, name: str, *values: Any, result: Any = None) -> Any:
        """Call a function; Python integers are passed as 64-bit words, which suits pointers and smaller integers."""
        function = getattr(self._c, name)
        function.restype = result
        return function(*(ctypes.c_uint64(value) if isinstance(value, int) else value for value in values))

    def address(self, name: str) -> int:
        """The address of a function of the library, for kernels that call it."""
        return ctypes.cast(getattr(self._c, name), ctypes.c_void_p).value or 0

    def addresses(self, scene: int) -> Embree:
        """All that a kernel needs to trace rays in a scene."""
        coherent, scattered = (argument.ctypes.data for argument in self._arguments)
        return Embree(self.address("rtcIntersect8"), self.address("rtcOccluded8"), coherent, scattered, scene)

    def check(self) -> None:
        """Raise the library's last error, if there is one."""
        code = self.call("rtcGetDeviceError", self.device, result=ctypes.c_int)
        if code:
            raise RuntimeError(f"Embree reports error {code}")

    def mesh_scene(self, mesh: Mesh) -> int:
        """The scene of one mesh, built once for each content; beyond 512 the least recently used are freed."""
        key = _content_key(mesh)
        if key not in self._meshes:
            self._meshes[key] = self._build_mesh(mesh)
        self._meshes.move_to_end(key)
        return self._meshes[key]

    def _trim(self) -> None:
        """Free meshes beyond the limit; Embree keeps those that a scene still uses."""
        while len(self._meshes) > _MESHES_KEPT:
            self.call("rtcReleaseScene", self._meshes.popitem(last=False)[1])

    def _build_mesh(self, mesh: Mesh) -> int:
        geometry = self.call("rtcNewGeometry", self.device, 0, result=ctypes.c_void_p)  # triangles
        self._fill(geometry, 1, 0x9003, mesh.vertices)  # vertex buffer of FLOAT3
        self._fill(geometry, 0, 0x5003, mesh.faces)  # index buffer of UINT3
        scene = self.call("rtcNewScene", self.device, result=ctypes.c_void_p)
        self._attach(scene, geometry, 0)
        self.call("rtcCommitScene", scene)
        self.check()
        return scene

    def _fill(self, geometry: int, kind: int, layout: int, values: NDArray[np.generic]) -> None:
        room = self.call("rtcSetNewGeometryBuffer", geometry, kind, 0, layout, 12, len(values), result=ctypes.c_void_p)
        ctypes.memmove(room, values.ctypes.data, values.nbytes)

    def _attach(self, scene: int, geometry: int, index: int, mask: int = NOTHING) -> None:
        self.call("rtcSetGeometryMask", geometry, mask)  # the default, 1, hides it from rays without bit 0
        self.call("rtcCommitGeometry", geometry)
        self.call("rtcAttachGeometryByID", scene, geometry, index)
        self.call("rtcReleaseGeometry", geometry)

    def new_scene(self, stage: Stage) -> int:
        """A scene with one instance geometry per instance, in order."""
        with self._lock:
            return self._new_scene(stage)

    def _new_scene(self, stage: Stage) -> int:
        scene = self.call("rtcNewScene", self.device, result=ctypes.c_void_p)
        for k, (instance, matrix) in enumerate(zip(stage.instances, transforms(stage), strict=True)):
            geometry = self.call("rtcNewGeometry", self.device, 121, result=ctypes.c_void_p)  # instance
            self.call("rtcSetGeometryInstancedScene", geometry, self.mesh_scene(stage.library[instance.mesh]))
            rows = np.ascontiguousarray(matrix[:3], np.float32)
            self.call("rtcSetGeometryTransform", geometry, 0, 0x9134, rows.ctypes.data)  # FLOAT3X4_ROW_MAJOR
            self._attach(scene, geometry, k, NOTHING if instance.seen else NOTHING ^ CAMERA)
        self.call("rtcCommitScene", scene)
        self.check()
        self._trim()
        return scene


class EmbreeScene:
    """The instances of a stage, ready to be hit; use it in a `with` block, which frees it."""

    def __init__(self, stage: Stage) -> None:
        self._library = library()
        self._scene = self._library.new_scene(stage)

    def __enter__(self) -> Embree:
        return self._library.addresses(self._scene)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._library.call("rtcReleaseScene", self._scene)


@cache
def library() -> Library:
    """The one library of this process."""
    return Library()


def _find_library() -> str:
    try:
        import embreex.rtcore  # loads TBB, which the library needs
    except ImportError as error:
        raise MissingPackageError(MISSING) from error
    home = Path(embreex.__file__).parent
    found = sorted(home.parent.glob("embreex.libs/libembree4*")) + sorted(home.glob("**/*embree4*"))
    if not found:
        raise MissingPackageError("embreex has no Embree 4 library: pip install 'diorama[render]'")
    return str(found[0])


def _arguments(flags: int) -> NDArray[np.uint32]:
    """RTCIntersectArguments (or occluded): flags, all features, and null pointers."""
    words = np.zeros(32, np.uint32)
    words[:2] = flags, NOTHING
    return words


_keys: weakref.WeakKeyDictionary[Mesh, bytes] = weakref.WeakKeyDictionary()


def _content_key(mesh: Mesh) -> bytes:
    if mesh not in _keys:
        _keys[mesh] = blake2b(mesh.vertices.tobytes() + b"|" + mesh.faces.tobytes(), digest_size=16).digest()
    return _keys[mesh]
