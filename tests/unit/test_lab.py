"""The lab without a browser: its numbers are a run's, its socket takes anything, its memory has a bound."""

import http.client
import json
import os
import random
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import diorama
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.memory import Memory
from diorama.core.plan import Plan, expand
from diorama.core.run import create, score_case
from diorama.core.scene import Scene, rng
from diorama.io.images import quantise
from diorama.lab.answers import Passes, maps, scores
from diorama.lab.desk import Desk
from diorama.lab.handles import handles, resolved
from diorama.lab.lanes import Job, Lane, SlowAnswers, Specs, both, unpacked
from diorama.lab.messages import Reply, Request, packed, read, request
from diorama.lab.targets import opened
from tests.lab_server import Served

pytest.importorskip("starlette", reason="the lab is not installed")


class Heard(list):
    """Replies by kind."""

    def of(self, kind: str) -> list[Reply]:
        return [reply for reply in self if reply.kind == kind]


def fresh() -> None:
    """Nobody asks for anything newer."""


@pytest.fixture(scope="module")
def birds() -> Desk:
    desk = Specs("birds", ("birds_cnn",), ("input_x_gradient",)).desk()
    desk.check()
    return desk


# The numbers of a run


def test_logits_after_release_are_those_of_a_run_and_those_while_dragging_are_near(birds):
    plan = Plan(["birds"], ["input_x_gradient"], ["single_deletion"], ["birds_cnn"], cases=8)
    cell = expand(plan).cells[0]
    bench = cell.bench(cell.cases[0], Memory())
    cell.protocol.object.prepare(bench, cell.cases)  # as a unit of a run does: all eight birds pass together
    for index in (0, 5):
        scene = cell.cases[index].scene
        expected, heard = bench.logits([scene])[0], Heard()
        birds.quick(Request(1, ("exact",), scene), heard.append, fresh)
        birds.quick(Request(2, ("logits",), scene, drag=True), heard.append, fresh)
        exact, near = (np.array(reply.values["values"]) for reply in heard.of("logits"))
        assert [reply.values["approx"] for reply in heard] == [False, True]
        assert np.abs(exact - expected).max() <= 1e-4
        assert np.abs(near - expected).max() <= 1e-4
        assert np.abs(np.diff(np.sort(expected))).max() > 1e-2  # the bound would notice another image


def test_scores_and_effects_are_those_that_a_run_writes(birds, tmp_path):
    plan = Plan(["birds"], ["input_x_gradient"], ["single_deletion"], ["birds_cnn"], cases=2, controls=True)
    run = create(tmp_path / "run", plan)
    written = {cell.labels["method"]: score_case(run, cell, 1)[0].value for cell in run.cells if cell.control != "dose"}
    scene, heard = run.cells[0].cases[1].scene, Heard()
    scores(birds, Request(1, ("scores",), scene), heard.append, Passes())
    found = next(r for r in heard.of("scores") if r.values["protocol"] == "single_deletion").values["lines"]
    shown = {line["name"]: line["scores"]["sd"]["value"] for line in found}
    assert shown["input_x_gradient"] == pytest.approx(written["input_x_gradient"], abs=1e-9)
    assert shown["oracle"] == pytest.approx(written["oracle"], abs=1e-9)
    assert shown["chance"] == pytest.approx(written["explain/random"], abs=1e-9)
    assert len(set(shown.values())) > 1
    birds.quick(Request(2, ("effects",), scene), heard.append, fresh)
    logits = run.cells[0].bench(run.cells[0].cases[1], Memory()).logits
    world, label = run.cells[0].world.object, scene.params["label"]
    slow = [
        logits([scene])[0][label] - logits([world.do(scene, **{part: None})])[0][label] for part in world.part_names
    ]
    assert heard.of("effects")[0].values["values"] == pytest.approx(slow, abs=1e-4)


def test_a_map_is_the_methods_own_and_claims_are_the_protocols_conversion(birds):
    heard, scene = Heard(), birds.numbered(0, 2)[1]
    maps(birds, Request(1, ("maps",), scene), heard.append, Passes())
    cell = birds.cell(0, birds.methods[0], "single_deletion")
    from diorama.lab.desk import case_of

    answer = cell.bench(case_of(scene), Memory()).answer(scene, scene.params["label"]).values
    heat = answer.sum(axis=2) if answer.ndim == 3 else answer
    shown = heard.of("map")[0].arrays["heat"].astype(float)
    assert np.corrcoef(shown.ravel(), np.clip(heat, *np.quantile(heat, [0.001, 0.999])).ravel())[0, 1] > 0.95
    parts = birds.world.object.render([scene])[0].truth["parts"]
    inside = [heat[np.isin(parts, ids)].sum() for ids in list(birds.world.object.part_ids.values())[1:]]
    claimed = heard.of("map")[0].values["claims"]  # over masks dilated by a pixel: near the plain sums
    assert np.corrcoef(claimed, inside)[0, 1] > 0.8


# What is shown


@pytest.mark.parametrize("spec", ["birds(size=32)", "sprites", "mondrian(size=32)", "tabletop(size=24, samples=1)"])
def test_every_handle_makes_a_change_that_the_world_takes(spec):
    world = build("world", spec).object
    scene = world.scene_at(0, 1)[1]
    found = handles(world, scene)
    assert found
    for handle in found:
        changes = [option.do for option in handle.options[:3]]
        if handle.kind == "slider":
            changes = [{handle.name: value} for value in (handle.low, handle.high)]
        elif handle.kind == "dome":
            changes = [{handle.name: {"pitch": 0.3, "roll": -0.2}}]
        elif handle.kind == "colour":
            changes = [{handle.name: [0.2, 0.4, 0.6]}]
        for change in changes:
            after = world.do(scene, **resolved(scene, change)) if change else scene
            assert after.params.keys() == scene.params.keys()
            assert [h.name for h in handles(world, after)] == [h.name for h in found]
        if handle.kind == "slider" and handle.value is not None:
            assert isinstance(handle.value, int | float)


def test_a_mosaics_cells_are_exchanged_and_their_effect_is_measured():
    desk = Specs("mosaic(source=birds(size=64), per_class=1)", ("birds_cnn",)).desk()
    scene, heard = desk.numbered(0, 0)[1], Heard()
    desk.quick(Request(1, ("picture", "effects"), scene, {"cell": 2}), heard.append, fresh)
    changed = Scene.from_json(heard.of("picture")[0].values["scene"])
    assert [a != b for a, b in zip(scene.params["cells"], changed.params["cells"], strict=True)] == [
        False,
        False,
        True,
        False,
    ]
    assert set(np.unique(heard.of("picture")[0].arrays["regions"])) == {1, 2, 3, 4}
    assert len(heard.of("effects")[0].values["values"]) == 4


def test_layers_with_a_planted_leak_and_codes():
    desk, heard = Specs("mondrian(size=32)", (), ("retinex_gray",)).desk(), Heard()
    slow = SlowAnswers(desk)
    slow.answer(Request(1, ("layers",), leak=0.5), heard.append, fresh)
    slow.answer(Request(2, ("layers",), leak=0.0), heard.append, fresh)
    half, method, none, _ = heard.of("layers")
    assert none.values["errors"] == pytest.approx([0, 0], abs=1e-6) and half.values["errors"][0] > 0.01
    assert method.values["name"] == "retinex_gray" and len(method.arrays) == 6
    desk, heard = Specs("sprites", (), ("pca(latents=3)",)).desk(), Heard()
    SlowAnswers(desk).answer(Request(1, ("codes",)), heard.append, fresh)
    said = heard.of("codes")[0].values
    assert said.get("why") is None and np.shape(said["motion"]) == (3, 5)


# Lanes


def test_the_latest_request_of_a_page_wins():
    seen, gate = [], threading.Event()

    def work(job, stale):
        gate.wait(120)
        seen.append((job.page, job.request.seq, stale()))

    lane = Lane(work).start()
    lane.put(Job(0, Request(1), print))
    while lane.waiting:
        time.sleep(0.01)  # the first is under way
    for seq in range(2, 50):
        lane.put(Job(0, Request(seq), print))
    lane.put(Job(1, Request(7), print))
    gate.set()
    deadline = time.monotonic() + 120
    while len(seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    lane.end()
    assert seen == [(0, 1, True), (0, 49, False), (1, 7, False)]


def test_a_slow_method_is_given_up_between_two_passes():
    desk = Specs("birds", ("birds_cnn",), ("rise(masks=100000)",)).desk()
    slow, heard, asked = SlowAnswers(desk), [], iter(range(10))

    def until() -> None:
        if next(asked, None) is None:
            from diorama.lab.desk import Stale

            raise Stale

    job = Job(0, Request(3, ("maps",)), lambda head, buffers: heard.append(head))
    from diorama.lab.lanes import answered

    answered(job, lambda send: slow.answer(job.request, send, until))
    assert heard[-1]["kind"] == "done" and heard[-1]["stale"]
    assert not [head for head in heard if head["kind"] == "map"]


# Messages


def test_a_reply_goes_round():
    reply = Reply("map", {"value": float("nan"), "n": 1}, {"a": np.arange(6, dtype=np.uint8).reshape(2, 3)})
    head, buffers = unpacked(packed(reply.head(4), reply.buffers()))
    assert head == {
        "kind": "map",
        "seq": 4,
        "value": None,
        "n": 1,
        "arrays": [{"name": "a", "shape": [2, 3], "type": "uint8"}],
    }
    assert buffers == [bytes(range(6))]


@pytest.mark.parametrize(
    "text",
    [
        *('{"seq": 1, "want": ["rm"]}', '{"seq": -1}', '{"seq": 1e99}', '{"x": 1}', "[]", "nul", '{"leak": NaN}'),
        *('{"seq": true}', '{"scene": 3}', '{"do": [1]}', '{"drag": 1}', "9" * 5000, '{"name": "\\ud800"}'),
        '{"scene": {"world": "birds", "params": {"mesh": "../../etc/passwd"}}}',
        '{"scene": {"world": "birds", "params": {"a": "/etc/passwd"}}}',
        '{"want": ' + "[" * 5000 + "]" * 5000 + "}",
        *('{"seq": 1, "target": -1}', '{"seq": ' + "1" * 400_000 + "}"),
    ],
)
def test_what_is_no_request_is_an_input_error(text):
    with pytest.raises(InputError) as error:
        read(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_a_request_goes_round():
    asked = Request(3, ("maps",), Scene("birds", {"label": 2}), {"beak": None}, True, 1, 4, 0.5, 6, 7, "x", "beak=none")
    assert request(json.loads(json.dumps(asked.to_json()))) == asked


# The server


@pytest.fixture(scope="module")
def sprites(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("lab"), "sprites", "-m", "pca(latents=3)")
    yield served
    served.end()


def ask(socket, **message) -> dict:
    """The replies to a message by kind, until it is done."""
    socket.send(json.dumps(message))
    found = {}
    for _ in range(60):
        head, buffers = unpacked(socket.recv(timeout=120))
        if head["seq"] != message["seq"]:
            continue
        found[head["kind"]] = (head, buffers)
        if head["kind"] in ("done", "error", "hello", "scene", "saved"):
            return found
    raise AssertionError(found)


def test_a_picture_through_the_socket_is_the_worlds(sprites):
    world = build("world", "sprites").object
    scene = world.scene_at(0, 4)[1]
    with sprites.socket() as socket:
        assert ask(socket, seq=1, want=["hello"])["hello"][0]["world"] == "sprites"
        found = ask(socket, seq=2, scene=scene.to_json(), do={"x": 0.9, "shape": "heart"}, want=["picture"])
    expected = world.do(scene, x=0.9, shape="heart")
    head, buffers = found["picture"]
    assert head["scene"] == expected.to_json() and head["key"] == expected.key
    assert buffers[0][: 64 * 64 * 3] == quantise(world.render([expected])[0].srgb(), 8).tobytes()


def get(served: Served, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in ({"Host": served.host, "Connection": "close"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    with connection.getresponse() as response:
        response.read()
    connection.close()
    return response


def test_only_its_own_page_with_its_token_is_served(sprites):
    from websockets.exceptions import InvalidStatus

    right = f"/?token={sprites.token}"
    page = get(sprites, right)
    assert page.status == 200
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert get(sprites, "/").status == get(sprites, "/?token=wrong").status == get(sprites, "/report").status == 403
    for host in ("evil.example", f"evil.example:{sprites.port}", f"127.0.0.1:{sprites.port + 1}", "127.0.0.1", ""):
        assert get(sprites, right, Host=host).status in (400, 403)
    assert get(sprites, right, Origin="http://evil.example").status == 403
    assert get(sprites, right, Host=f"localhost:{sprites.port}").status == 200
    assert get(sprites, "/static/../server.py").status == get(sprites, "/static/%2e%2e/server.py").status == 404
    for origin, token in (
        ("http://evil.example", None),
        ("null", None),
        (f"https://{sprites.host}", None),
        (None, "wrong"),
        (None, ""),
    ):
        with pytest.raises(InvalidStatus) as refused, sprites.socket(origin, token):
            pass
        assert refused.value.response.status_code == 403


def hostile(generator: random.Random, scene: dict) -> str | bytes:
    """A message that no page sends: broken, nested, of other types, with numbers and texts that no scene has."""
    odd = [
        None,
        True,
        -1,
        1e308,
        10**30,
        "",
        "x" * 5000,
        "../../etc/passwd",
        [],
        {},
        [[[[]]]],
        {"a": {"b": []}},
        "\x00",
        "NaN",
    ]
    broken = json.dumps({"seq": 1, "want": ["picture"], "scene": scene})
    pick, params = generator.choice, scene["params"]
    kinds = [
        lambda: bytes(generator.randrange(256) for _ in range(generator.randrange(200))),
        lambda: broken[: generator.randrange(len(broken))],
        lambda: "[" * generator.randrange(20_000),
        lambda: json.dumps({name: pick(odd) for name in Request.__slots__ if generator.random() < 0.5}),
        lambda: json.dumps(
            {
                "seq": 2,
                "want": ["picture", "codes", "save"],
                "scene": {
                    "world": "sprites",
                    "params": {n: pick([*odd, v]) for n, v in params.items() if pick([0, 1, 1])},
                },
            }
        ),
        lambda: json.dumps(
            {"seq": 3, "want": ["picture"], "scene": scene, "do": {pick([*params, "__class__", "a.b", ""]): pick(odd)}}
        ),
        lambda: json.dumps(
            {
                "seq": 4,
                "want": ["case", "cases", "layers", "concept", "effects", "exact"],
                "name": pick(["../x", "\u202e"]),
            }
        ),
        lambda: broken.replace("1", pick(["NaN", "Infinity", "1e999", "-0"])),
    ]
    return generator.choice(kinds)()


@pytest.mark.slow
def test_two_thousand_hostile_messages_leave_it_alive(sprites):
    from websockets.exceptions import ConnectionClosed

    generator, scene = random.Random(0), build("world", "sprites").object.scene_at(0, 0)[1].to_json()
    sent = 0
    while sent < 2000:
        with sprites.socket() as socket:
            try:
                for _ in range(250):
                    socket.send(hostile(generator, scene))
                    sent += 1
            except ConnectionClosed:
                continue
    with sprites.socket() as socket, pytest.raises(ConnectionClosed):  # larger than anything a page says
        socket.send("x" * 2_000_000)
        socket.recv(timeout=120)
    with sprites.socket() as socket:
        assert ask(socket, seq=9, want=["hello"])["hello"][0]["world"] == "sprites"
        assert "picture" in ask(socket, seq=10, scene=scene, want=["picture"])
        assert ask(socket, seq=11, want=["picture"], scene={"world": "birds", "params": {}})["error"][0]["message"]
    assert sprites.process.poll() is None
    assert {path.name for path in sprites.folder.iterdir()} <= {"cases.jsonl"}  # nothing else is ever written


def test_a_saved_case_is_scored_by_a_run(sprites, diorama):
    (sprites.folder / "cases.jsonl").unlink(missing_ok=True)
    world = build("world", "sprites").object
    scene = world.do(world.scene_at(0, 4)[1], x=0.77)
    with sprites.socket() as socket:
        for seq, count in ((1, 1), (2, 1)):
            said = ask(socket, seq=seq, want=["save"], scene=scene.to_json())["saved"][0]
            assert said["count"] == count and said["again"] is (seq == 2)
    listed = build("world", f"scenes(file={sprites.folder / 'cases.jsonl'})").object
    assert listed.scene_at(0, 0)[1] == scene and listed.length == 1 and listed.levels == world.levels


# The suite that saved cases make


def test_scenes_are_of_their_worlds_kind_and_follow_their_content(tmp_path):
    world = build("world", "birds(size=32)").object
    file = tmp_path / "cases.jsonl"
    scenes = [world.do(world.scene_at(0, i)[1], beak=None) for i in range(3)]
    lines = [json.dumps({"world": "birds(size=32)", "scene": scene.to_json()}) for scene in scenes]
    file.write_text("\n".join(lines[:2]))
    two = build("world", f"scenes(file={file})")
    file.write_text("\n".join(lines))
    three = build("world", f"scenes(file={file})")
    assert two.digest != three.digest and type(three.object).__mro__[2].__name__ == "Birds"
    assert [three.object.scene_at(9, i)[1] for i in range(3)] == scenes
    assert three.object.part_names == world.part_names and three.object.classes == world.classes
    rendered = three.object.render([scenes[0]])[0]
    assert np.array_equal(rendered.image, world.render([scenes[0]])[0].image)
    (tmp_path / "b").mkdir()
    moved = tmp_path / "b" / "other.jsonl"
    moved.write_text(file.read_text())
    assert build("world", f"scenes(file={moved})").digest == three.digest  # by content, not by place
    for text, said in (
        ("", "0 lines"),
        ("{", "line 1 is not JSON"),
        ('{"world": 3}', "line 1 should be"),
        (lines[0] + "\n" + lines[1].replace("birds(size=32)", "birds(size=64)"), "one file for each"),
        (lines[0].replace('"world": "birds"', '"world": "dogs"'), "has a scene of 'dogs'"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=re.escape(said)):
            build("world", f"scenes(file={file})")


def test_a_run_judges_saved_scenes_as_it_judges_the_world_itself(tmp_path):
    world = build("world", "mondrian(size=32)").object
    scene = world.scene_at(0, 1)[1]
    (tmp_path / "cases.jsonl").write_text(json.dumps({"world": "mondrian(size=32)", "scene": scene.to_json()}))
    method, saved = "retinex_gray(threshold=0.1)", f"scenes(file={tmp_path / 'cases.jsonl'})"
    ours = diorama.evaluate(method, on=saved, by="lmse", progress=False)
    theirs = diorama.evaluate(method, on="mondrian(size=32)", by="lmse", cases=2, progress=False)
    second = theirs.rows[theirs.rows["case"] == theirs.rows["case"].iloc[-1]]
    assert ours.rows["value"].tolist() == second["value"].tolist()


# Memory


def resident() -> float:
    """Resident memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_memory_is_bounded_over_many_interactions():
    desk = Specs("birds(size=48)").desk()
    desk = replace(desk, memory=Memory(8 << 20))  # a small budget, which is full after some hundred frames
    scene, sizes = desk.numbered(0, 0)[1], {}
    for i in range(1500):
        angle = float(rng(0, "drag", i).uniform(-1, 1))
        do = {"light": {"pitch": angle}} if i % 2 else {"beak": None, "camera.distance": 200 + i % 200}
        desk.quick(
            Request(i, ("picture",), scene, do, drag=True), lambda reply: packed(reply.head(1), reply.buffers()), fresh
        )
        if i in (100, 1499):
            sizes[i] = resident()
    assert sizes[1499] - sizes[100] < 30
    assert desk.memory.size <= 8 << 20


# The notebook


def test_the_widget_answers_through_its_channel():
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    from diorama.lab.widget import desk_of, handle_message, script

    desk = desk_of("sprites", (), ["pca(latents=2)"])
    heard, over = [], threading.Event()

    def send(head, buffers):
        heard.append((head, buffers))
        if head["kind"] == "done":
            over.set()

    lane, first = Lane(both(desk)).start(), desk.numbered(0, 3)[1]
    handle_message(desk, lane, first, {"seq": 1, "want": ["hello"]}, send)
    assert heard[0][0]["first"] == first.to_json()
    handle_message(desk, lane, first, {"seq": 2, "want": ["picture"], "scene": first.to_json()}, send)
    assert over.wait(120)
    lane.end()
    picture = next(pair for pair in heard if pair[0]["kind"] == "picture")
    assert picture[1][0] == quantise(desk.world.object.render([first])[0].srgb(), 8).tobytes()
    handle_message(desk, lane, first, {"seq": "x"}, send)
    assert heard[-1][0]["kind"] == "error"
    text = script()
    assert "import " not in re.sub(r"import\(", "", re.sub(r"(?m)^\s*(\*|//|/\*\*).*$", "", text))
    names = re.findall(r"(?m)^(?:async )?(?:function|class|const|let) (\w+)", text)
    assert len(names) == len(set(names)), "two modules of the page have a name in common"
    assert hasattr(diorama.lab("sprites"), "_esm")


def test_the_page_is_small_and_asks_nobody_else():
    files = list((Path(diorama.__file__).parent / "lab" / "static").glob("*"))
    script = [path.read_text() for path in files if path.suffix == ".js"]
    assert sum(len(text.splitlines()) for text in script) <= 1200
    for path in files:
        outside = set(re.findall(r"(?:https?|wss?)://[^\s\"'`$]+", path.read_text())) - {"http://www.w3.org/2000/svg"}
        assert not outside, (path, outside)


@pytest.mark.slow
def test_what_makes_no_sense_is_said_in_one_line(diorama, tmp_path):
    for words, said in (
        (["birds", "-m", "grad_cam"], "give one with -M"),
        (["sprites", "-M", "birds_cnn"], "takes 128×128 images"),
        (["birds", "--scene", '{"world": "birds"}'], "not a scene"),
        (["brids"], "did you mean"),
        (["sprites", "--token", "short"], "at least 16 characters"),
    ):
        ended = diorama("lab", *words)
        assert ended.returncode == 2 and said in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr


def test_a_run_is_opened_with_its_own_world_models_and_methods(tmp_path):
    plan = Plan(["mondrian(size=32)"], ["R=retinex_gray", "baseline"], ["lmse"], cases=2)
    run = create(tmp_path / "run", plan)
    from diorama.core.run import work

    work(run, 0, 1)
    specs, cases = opened(str(tmp_path / "run"), (), ())
    assert specs == Specs("mondrian(size=32)", (), ("R=retinex_gray", "baseline"))
    listed = cases.listed()["cases"]
    assert len(listed) == 2 and listed[0]["disagreement"] >= listed[1]["disagreement"]
    case = cases.case(listed[0]["name"])
    assert case["scene"]["world"] == "mondrian" and {row["method"] for row in case["rows"]} == {"R", "baseline"}
    assert "<html" in cases.report()
    with pytest.raises(InputError, match="no case"):
        cases.case("nothing")
