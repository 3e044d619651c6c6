"""ops_image.py: resampling, regions of interest, boxes, grids, Fourier transforms, windows."""
import math

from draw import BOOL, DOUBLE, FLOAT, INT8, INT32, INT64, UINT8, Skip, entry, product


@entry("Resize", opset=(10, 11, 13, 18, 19), weight=6)
def resize(d):
    s = [d.int(1, 2), d.int(1, 2), d.int(1, d.size + 1), d.int(1, d.size + 1)]
    mode = d.pick("nearest", "linear", "cubic") if d.opset >= 11 else d.pick("nearest", "linear")
    kind = d.pick(FLOAT, FLOAT, UINT8, INT8) if mode == "nearest" else FLOAT
    d.input(kind, s, special=False)
    d.maybe("mode", mode, 0.5 if mode == "nearest" else 1)
    factors = [d.pick(1.0, 1.0, 2.0, 0.5, 2.5, 0.4, 3.0, 1.3, 0.7) for _ in range(2)]
    if d.opset == 10:
        if any(math.floor(s[2 + i] * factors[i]) < 1 for i in range(2)):
            raise Skip
        d.input(FLOAT, [4], [1.0, 1.0] + factors)
        return
    coordinate = d.pick("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                        "half_pixel_symmetric" if d.opset >= 19 else "half_pixel")
    d.maybe("coordinate_transformation_mode", coordinate, 0.5 if coordinate == "half_pixel" else 1)
    if mode == "nearest":
        d.maybe("nearest_mode", d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        d.maybe("cubic_coeff_a", d.pick(-0.5, -0.75))
        d.maybe("exclude_outside", d.int(0, 1))
    antialias = d.opset >= 18 and mode != "nearest" and d.chance(0.4)
    if antialias:
        d.attr("antialias", 1)
    axes = None
    if d.opset >= 18 and d.chance(0.3):
        axes = [2, 3]
        d.attr("axes", axes)
    if d.opset < 13:
        d.input(FLOAT, [0], [], True)
    else:
        d.absent()
    if d.chance(0.5):
        if any(math.floor(s[2 + i] * factors[i]) < 1 for i in range(2)):
            raise Skip
        values = factors if axes else [1.0, 1.0] + factors
        d.input(FLOAT, [len(values)], values)
    else:
        if d.opset < 13:
            d.input(FLOAT, [0], [], True)
        else:
            d.absent()
        sizes = [d.int(1, 8), d.int(1, 8)]
        if d.opset >= 18 and d.chance(0.3):
            d.attr("keep_aspect_ratio_policy", d.pick("not_larger", "not_smaller", "stretch"))
            if not axes:
                d.attr("axes", [2, 3])
            d.ints(sizes)
        else:
            d.ints(sizes if axes else s[:2] + sizes)
    d.tolerance(1e-4, 1e-4)


@entry("Upsample", opset=(7, 9))
def upsample(d):
    s = [d.int(1, 2), d.int(1, 2), d.int(1, d.size + 1), d.int(1, d.size + 1)]
    d.input(FLOAT, s, special=False)
    d.maybe("mode", d.pick("nearest", "linear"))
    factors = [1.0, 1.0, d.pick(1.0, 2.0, 2.5, 3.0, 1.3), d.pick(1.0, 2.0, 2.5, 3.0, 1.3)]
    if d.opset == 7:
        d.attr("scales", factors)
    else:
        d.input(FLOAT, [4], factors)


@entry("GridSample", opset=(16, 20, 22), weight=2)
def grid_sample(d):
    three = d.opset >= 20 and d.chance(0.3)
    n, c = d.int(1, 2), d.int(1, 2)
    space = [d.int(1, 5) for _ in range(3 if three else 2)]
    out = [d.int(1, 4) for _ in space]
    names = ("linear", "nearest", "cubic") if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    mode = d.pick(names[:2] if three else names)
    d.maybe("mode", mode, 0.5 if mode == names[0] else 1)
    d.maybe("padding_mode", d.pick("zeros", "border", "reflection"))
    d.maybe("align_corners", d.int(0, 1))
    d.input(FLOAT, [n, c] + space, special=False)
    count = n * product(out) * len(space)
    d.input(FLOAT, [n] + out + [len(space)], [d.uniform(-1.4, 1.4) for _ in range(count)])
    d.tolerance(1e-4, 1e-3)


@entry("AffineGrid", opset=20)
def affine_grid(d):
    three = d.chance(0.3)
    n = d.int(1, 2)
    size = [n, d.int(1, 2)] + [d.int(2, 4) for _ in range(3 if three else 2)]
    d.input(FLOAT, [n, 3, 4] if three else [n, 2, 3], special=False)
    d.ints(size)
    d.maybe("align_corners", d.int(0, 1))


@entry("RoiAlign", opset=(10, 16, 22), weight=2)
def roi_align(d):
    n, c, h, w = d.int(1, 2), d.int(1, 2), d.int(2, 8), d.int(2, 8)
    rois = d.int(1, 3)
    boxes = []
    for _ in range(rois):
        x, y = d.uniform(0, w - 1), d.uniform(0, h - 1)
        boxes += [x, y, d.uniform(x, w), d.uniform(y, h)]
    d.input(FLOAT, [n, c, h, w], special=False)
    d.input(FLOAT, [rois, 4], boxes)
    d.input(INT64, [rois], [d.int(0, n - 1) for _ in range(rois)])
    d.maybe("mode", d.pick("avg", "max"))
    d.attr("output_height", d.int(1, 3))
    d.attr("output_width", d.int(1, 3))
    d.maybe("sampling_ratio", d.int(0, 3))
    d.maybe("spatial_scale", d.pick(0.5, 1.0))
    if d.opset >= 16:
        d.maybe("coordinate_transformation_mode", d.pick("half_pixel", "output_half_pixel"))
    d.tolerance(1e-4, 1e-3)


@entry("MaxRoiPool", opset=(1, 22))
def max_roi_pool(d):
    n, c, h, w = d.int(1, 2), d.int(1, 2), d.int(2, 8), d.int(2, 8)
    rois = d.int(1, 3)
    values = []
    for _ in range(rois):
        x, y = d.int(0, w - 1), d.int(0, h - 1)
        values += [d.int(0, n - 1), x, y, d.int(x, w - 1), d.int(y, h - 1)]
    d.input(FLOAT, [n, c, h, w], special=False)
    d.input(FLOAT, [rois, 5], values)
    d.attr("pooled_shape", [d.int(1, 3), d.int(1, 3)])


@entry("NonMaxSuppression", opset=(10, 11), weight=2)
def nms(d):
    b, c, n = d.int(1, 2), d.int(1, 2), d.int(1, 6)
    boxes = []
    for _ in range(b * n):
        y, x = d.uniform(0, 4), d.uniform(0, 4)
        box = [y, x, y + d.uniform(0.2, 3), x + d.uniform(0.2, 3)]
        if d.chance(0.2):
            box = box[2:] + box[:2]
        boxes += box
    d.input(FLOAT, [b, n, 4], boxes)
    scores = [i / 16 for i in d.rng.sample(range(16), n)]
    d.input(FLOAT, [b, c, n], scores * (b * c))
    if d.chance(0.9):
        d.scalar(INT64, d.int(0, 4))
        if d.chance(0.7):
            d.scalar(FLOAT, d.pick(0.0, 0.3, 0.5, 0.9))
            if d.chance(0.6):
                d.scalar(FLOAT, d.pick(0.0, 0.25, 0.5))
    d.maybe("center_point_box", d.int(0, 1), 0.3)


@entry("DFT", opset=(17, 20), weight=2)
def dft(d):
    n = d.int(2, 9)
    s = d.shape(0, 2, 1) + [n] + d.shape(0, 1, 1)
    axis = s.index(n)
    complex_in = d.chance(0.5)
    inverse = d.int(0, 1) if complex_in else 0
    d.maybe("inverse", inverse, 1 if inverse else 0.3)
    onesided = d.int(0, 1) if not complex_in and not inverse else 0
    d.maybe("onesided", onesided, 1 if onesided else 0.3)
    s = [1] + s
    axis += 1
    d.input(d.pick(FLOAT, DOUBLE), s + [2 if complex_in else 1], special=False)
    length = d.int(1, 12)
    if d.chance(0.3):
        d.scalar(INT64, length)
    else:
        d.absent()
    if d.opset == 17:
        d.attr("axis", axis)
    else:
        d.scalar(INT64, axis if d.chance(0.6) else axis - len(s) - 1)
    d.tolerance(1e-4, 1e-3)


@entry("STFT", opset=17)
def stft(d):
    b, n = d.int(1, 2), d.int(6, 20)
    frame = d.int(2, 6)
    onesided = d.int(0, 1)
    d.maybe("onesided", onesided)
    d.input(FLOAT, [b, n, 1], special=False)
    d.scalar(INT64, d.int(1, 4))
    if d.chance(0.5):
        d.input(FLOAT, [frame], special=False)
        if d.chance(0.5):
            d.scalar(INT64, frame)
    else:
        d.absent()
        d.scalar(INT64, frame)
    d.tolerance(1e-4, 1e-3)


@entry("HannWindow HammingWindow BlackmanWindow", opset=17)
def windows(d):
    d.scalar(d.pick(INT32, INT64), d.int(2, 12))
    d.maybe("periodic", d.int(0, 1))
    d.maybe("output_datatype", d.pick(FLOAT, DOUBLE))
    d.tolerance(1e-5, 1e-5)


@entry("MelWeightMatrix", opset=17)
def mel(d):
    d.scalar(INT64, d.int(2, 8))
    d.scalar(INT64, d.pick(16, 32, 64))
    d.scalar(INT64, d.pick(8000, 16000))
    d.scalar(FLOAT, d.pick(0.0, 100.0))
    d.scalar(FLOAT, d.pick(2000.0, 4000.0))
    d.tolerance(1e-4, 1e-4)
