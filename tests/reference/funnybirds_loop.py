"""FunnyBirds evaluated the slow way: image by image, protocol by protocol, from a folder on disk, as the paper's framework.

Every call for important parts explains the image twice, every threshold of the preservation and the deletion check runs
the network again, every image is read from its PNG. Counters say how often. Written from the description of the
framework's behaviour (its quirks included), to hold the fast protocol against.
"""

import json
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
from scipy.stats import spearmanr

PARTS = ("beak", "eye", "foot", "tail", "wing")
CODES = {
    (255, 255, 253): "eye", (255, 255, 254): "eye", (255, 255, 0): "beak", (255, 0, 1): "foot", (255, 0, 2): "foot",
    (0, 255, 1): "wing", (0, 255, 2): "wing", (0, 0, 255): "tail",
}  # fmt: skip
THRESHOLDS = np.linspace(0.01, 0.50, num=80)


def read(path):
    """An RGBA file as RGB bytes."""
    return cv2.imread(str(path), cv2.IMREAD_UNCHANGED)[:, :, 2::-1]


class Loop:
    """One model and one explainer on the test split of a folder.

    `logits(image) -> (classes,)` and `explain(image, target) -> (h, w, c) or (h, w)` take one (h, w, 3) float32 image.
    """

    def __init__(self, root, logits, explain, kernel):
        self.root, self._logits, self._explain, self.kernel = Path(root), logits, explain, kernel
        self.records = json.loads((self.root / "dataset_test.json").read_text())
        self.classes = [c["parts"] for c in json.loads((self.root / "classes.json").read_text())]
        self.forwards = self.explanations = 0
        self.margins = []  # |PI − tΣa| / Σ|a|: how near to a tie a decision was

    def __len__(self):
        return len(self.records)

    def logits(self, image):
        self.forwards += 1
        return self._logits(image)

    def explain(self, image, target):
        self.explanations += 1
        return np.atleast_3d(self._explain(image, target))

    def label(self, index):
        return self.records[index]["class_idx"]

    def objects(self, index):
        return len([name for name in self.records[index]["bg_objects"].split(",") if name])

    def image(self, index):
        return read(self.root / "test" / str(self.label(index)) / f"{index:06d}.png").astype(np.float32) / 255

    def part_map(self, index):
        return read(self.root / "test_part_map" / str(self.label(index)) / f"{index:06d}.png")

    def without(self, index, removed):
        name = "body_" + "_".join(sorted(set(PARTS) - set(removed))) + ".png"
        folder = self.root / "test_interventions" / str(self.label(index)) / f"{index:06d}"
        return read(folder / name).astype(np.float32) / 255

    def without_object(self, index, thing):
        folder = self.root / "test_interventions" / str(self.label(index)) / f"{index:06d}"
        return read(folder / "background_interventions" / f"{thing}.png").astype(np.float32) / 255

    def part_importance(self, index, target, with_bg=False):
        heat, colours = self.explain(self.image(index), target), self.part_map(index)
        found = dict.fromkeys(PARTS, 0.0)
        for code, part in CODES.items():
            found[part] += self.inside(heat, colours, code)
        if with_bg:
            for i in range(50):
                found[f"bg_{i:03d}"] = self.inside(heat, colours, (204, 204, 204 + i))
        return found

    def inside(self, heat, colours, code):
        mask = (colours == np.array(code)).all(axis=2).astype(np.uint8)
        return float((heat * cv2.dilate(mask, np.ones((self.kernel, self.kernel), np.uint8))[:, :, None]).sum())

    def important_parts(self, index, target, with_bg=False):
        total = self.explain(self.image(index), target).astype(np.float64)
        importance = self.part_importance(index, target, with_bg)
        size = max(np.abs(total).sum(), 1e-30)
        gaps = [abs(v - t * total.sum()) / size for v in importance.values() for t in THRESHOLDS if v != 0]
        self.margins.append((index, min(gaps, default=0.0)))
        return [{part for part, value in importance.items() if value > t * total.sum()} for t in THRESHOLDS]

    def minimal_sets(self, label):
        """With the quirk that the last class has none."""
        own = self.classes[label]
        subsets = [set(s) for n in range(1, 6) for s in combinations(PARTS, n)]
        sufficient = []
        for subset in subsets:
            for i, other in enumerate(self.classes):
                if i == label:
                    continue
                if all(own[part] == other[part] for part in subset):
                    break
                if i == len(self.classes) - 1:
                    sufficient.append(subset)
        return [s for s in sufficient if not any(other < s for other in sufficient)]

    def accuracy(self, index):
        return float(self.logits(self.image(index)).argmax() == self.label(index))

    def csdc(self, index):
        label = self.label(index)
        if self.logits(self.image(index)).argmax() != label:
            return None
        minimal = self.minimal_sets(label)
        return [max([len(s & p) / len(s) for s in minimal], default=0.0) for p in self.important_parts(index, label)]

    def preservation(self, index):
        predicted = self.logits(self.image(index)).argmax()
        found = self.important_parts(index, predicted)
        return [float(self.logits(self.without(index, set(PARTS) - p)).argmax() == predicted) for p in found]

    def deletion(self, index):
        predicted = self.logits(self.image(index)).argmax()
        found = self.important_parts(index, predicted)
        return [float(self.logits(self.without(index, p)).argmax() != predicted) for p in found]

    def single_deletion(self, index):
        label = self.label(index)
        whole = self.logits(self.image(index))[label]
        drops = [whole - self.logits(self.without(index, {part}))[label] for part in PARTS]
        importance = list(self.part_importance(index, label).values())
        if len(set(importance)) == 1 or len(set(drops)) == 1:
            return None
        return 0.5 + 0.5 * spearmanr(drops, importance).statistic

    def target_sensitivity(self, index):
        label = self.label(index)
        own = self.classes[label]
        shared = {i: {p for p in PARTS if own[p] == other[p]} for i, other in enumerate(self.classes)}
        near = [i for i in shared if len(shared[i]) == 2]
        c1, c2 = next((a, b) for a, b in combinations(near, 2) if not shared[a] & shared[b])
        self.logits(self.image(index))
        without1, without2 = (self.logits(self.without(index, shared[c])) for c in (c1, c2))
        if not (without1[c1] < without2[c1] and without2[c2] < without1[c2]):
            return None
        first, second = self.part_importance(index, c1), self.part_importance(index, c2)
        one = sum(first[p] for p in shared[c1]) > sum(second[p] for p in shared[c1])
        two = sum(first[p] for p in shared[c2]) < sum(second[p] for p in shared[c2])
        return (float(one) + float(two)) / 2

    def removals(self, index, label):
        return {f"bg_{i:03d}": self.logits(self.without_object(index, i))[label] for i in range(self.objects(index))}

    def distractibility(self, index):
        label = self.label(index)
        whole = self.logits(self.image(index))[label]
        scores = {part: self.logits(self.without(index, {part}))[label] for part in PARTS}
        scores |= self.removals(index, label)
        irrelevant = {k for k, s in scores.items() if abs(whole - s) < abs(0.05 * whole) or whole < s}
        if not irrelevant:
            return None
        return [1 - len(p & irrelevant) / len(irrelevant) for p in self.important_parts(index, label, with_bg=True)]

    def background(self, index):
        """The number of relevant objects and of all of them."""
        label = self.label(index)
        whole = self.logits(self.image(index))[label]
        scores = self.removals(index, label).values()
        return sum(abs(whole - s) >= abs(0.05 * whole) and whole > s for s in scores), len(scores)

    def evaluate(self):
        """Everything: the scores of every image, and the summary with the threshold chosen on these images."""
        kinds = {"a": self.accuracy, "csdc": self.csdc, "pc": self.preservation, "dc": self.deletion,
                 "d": self.distractibility, "sd": self.single_deletion, "ts": self.target_sensitivity}  # fmt: skip
        each = {name: [protocol(i) for i in range(len(self))] for name, protocol in kinds.items()}
        counts = [self.background(i) for i in range(len(self))]
        means = {name: np.mean([v for v in values if v is not None], axis=0) for name, values in each.items()}
        means["bi"] = 1 - sum(r for r, _ in counts) / sum(n for _, n in counts)
        best, chosen = -1.0, 0
        for i in range(80):
            score = (means["csdc"][i] + means["pc"][i] + means["dc"][i]) / 3 + means["d"][i]
            if score > best:
                best, chosen = score, i
        final = {name: float(np.atleast_1d(v)[chosen if np.size(v) > 1 else 0]) for name, v in means.items()}
        final["com"] = ((final["csdc"] + final["pc"] + final["dc"]) / 3 + final["d"]) / 2
        final["mx"] = (final["com"] + final["sd"] + final["ts"]) / 3
        return each, final, float(THRESHOLDS[chosen])


class BoxLoop(Loop):
    """ProtoPNet's boxes as published. `explain(image, target)` gives the class's coarse similarity maps (p, i, j) and their
    connections (p,); everything after that is done here, prototype by prototype."""

    def explain(self, image, target):
        """Of every prototype: the box as a mask that ends one pixel early, the enlarged map, its top, its weight."""
        self.explanations += 1
        similar, weights = self._explain(image, target)
        return [
            self.prototype(coarse, weight, image.shape[:2]) for coarse, weight in zip(similar, weights, strict=True)
        ]

    def prototype(self, coarse, weight, size):
        large = cv2.resize(coarse, size[::-1], interpolation=cv2.INTER_CUBIC)
        high = large >= np.percentile(large, 95)
        rows, columns = np.where(high.any(axis=1))[0], np.where(high.any(axis=0))[0]
        short, whole = np.zeros(size), np.zeros(size)
        short[rows[0] : rows[-1], columns[0] : columns[-1]] = 1
        whole[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = 1
        return short, whole, large.astype(np.float64), float(coarse.max()), float(weight)

    def sub_parts(self, index, with_bg):
        """Every sub-part's element and mask, in the order of the released list of colours."""
        colours = self.part_map(index)
        codes = dict(CODES)
        if with_bg:
            codes |= {(204, 204, 204 + i): f"bg_{i:03d}" for i in range(50)}
        for code, name in codes.items():
            yield name, (colours == np.array(code)).all(axis=2)

    def part_importance(self, index, target, with_bg=False):
        found = {name: 0.0 for name, _ in self.sub_parts(index, with_bg)}
        heat = sum(short * top * weight for short, _, _, top, weight in self.explain(self.image(index), target))
        for name, mask in self.sub_parts(index, with_bg):
            found[name] += float(heat[mask].sum())
        return {name: found[name] for name in (*PARTS, *sorted(set(found) - set(PARTS)))}

    def important_parts(self, index, target, with_bg=False):
        union = np.zeros(self.image(index).shape)  # three channels
        for short, *_ in self.explain(self.image(index), target):
            union = np.clip(union + short[:, :, None], 0, 1)
        shares = [(name, union[mask].sum(), mask.sum()) for name, mask in self.sub_parts(index, with_bg)]
        return [{name for name, inside, area in shares if inside > t * area} for t in THRESHOLDS]


class SimilarityLoop(BoxLoop):
    """Similarity maps of the revisited evaluation: importance from the maps, important parts from whole boxes."""

    def part_importance(self, index, target, with_bg=False):
        found = {name: 0.0 for name, _ in self.sub_parts(index, with_bg)}
        heat = sum(large * weight for _, _, large, _, weight in self.explain(self.image(index), target))
        for name, mask in self.sub_parts(index, with_bg):
            found[name] += float(heat[self.dilated(mask)].sum())
        return {name: found[name] for name in (*PARTS, *sorted(set(found) - set(PARTS)))}

    def important_parts(self, index, target, with_bg=False):
        union = np.zeros(self.image(index).shape[:2])
        for _, whole, *_ in self.explain(self.image(index), target):
            union = np.clip(union + whole, 0, 1)
        shares = {}  # a second sub-part overwrites the first: the released quirk
        for name, mask in self.sub_parts(index, with_bg):
            shares[name] = union[self.dilated(mask)].sum(), self.dilated(mask).sum()
        return [{name for name, (inside, area) in shares.items() if inside > t * area} for t in THRESHOLDS]

    def dilated(self, mask):
        return cv2.dilate(mask.astype(np.uint8), np.ones((self.kernel, self.kernel), np.uint8)).astype(bool)


class SumLoop(Loop):
    """Similarity maps read like an attribution: their sum with the connections as weights."""

    def explain(self, image, target):
        self.explanations += 1
        similar, weights = self._explain(image, target)
        size = image.shape[1::-1]
        large = [cv2.resize(one, size, interpolation=cv2.INTER_CUBIC).astype(np.float64) for one in similar]
        return np.atleast_3d(sum(w * one for w, one in zip(weights.astype(np.float64), large, strict=True)))
