"""Gray and colour Retinex and Weiss, one pixel pair at a time, solved densely; shaped like the paper; slow on purpose."""

import numpy as np

FLOOR = 3.0  # on the released scale of 0 to 257


def pairs(mask):
    """All pairs of vertical and horizontal neighbours inside the mask."""
    height, width = mask.shape
    for y in range(height):
        for x in range(width):
            for dy, dx in ((1, 0), (0, 1)):
                if y + dy < height and x + dx < width and mask[y, x] and mask[y + dy, x + dx]:
                    yield (y, x), (y + dy, x + dx)


def reconstruct(mask, gradient):
    """The image whose differences are nearest to gradient[pair]; every component has mean zero by the pseudo-inverse."""
    number = {tuple(at): i for i, at in enumerate(np.argwhere(mask))}
    listed = list(pairs(mask))
    matrix = np.zeros((len(listed), len(number)))
    for row, (a, b) in enumerate(listed):
        matrix[row, number[a]], matrix[row, number[b]] = -1, 1
    solution = np.linalg.pinv(matrix) @ np.array([gradient[p] for p in listed])
    image = np.zeros(mask.shape)
    for at, i in number.items():
        image[at] = solution[i]
    return image


def layers(image, mask, gradient):
    reflectance = np.where(mask, np.exp(reconstruct(mask, gradient)), 0)
    return reflectance, np.where(mask, image / np.where(mask, reflectance, 1), 0)


def gray(rgb):
    return np.maximum(257 * rgb.mean(axis=2), FLOOR)


def retinex_gray(rgb, mask, threshold):
    image = gray(rgb)
    log = np.log(image)
    kept = {(a, b): (log[b] - log[a] if abs(log[b] - log[a]) > threshold else 0.0) for a, b in pairs(mask)}
    return layers(image, mask, kept)


def retinex_color(rgb, mask, brightness, chroma):
    colour = np.maximum(257 * rgb, FLOOR)
    image = colour.mean(axis=2)
    kept = {}
    for a, b in pairs(mask):
        change = np.log(colour[b]) - np.log(colour[a])
        mean = change.mean()
        strong = np.sqrt(((change - mean) ** 2).sum()) > chroma or abs(mean) > brightness
        kept[a, b] = np.log(image[b]) - np.log(image[a]) if strong else 0.0
    return layers(image, mask, kept)


def weiss(rgb, lights, mask, threshold=0.0):
    logs = [np.log(gray(light)) for light in lights]
    kept = {}
    for a, b in pairs(mask):
        median = float(np.median([log[b] - log[a] for log in logs]))
        kept[a, b] = median if abs(median) > threshold else 0.0
    return layers(257 * rgb.mean(axis=2), mask, kept)  # the image itself is not clipped here, as released
