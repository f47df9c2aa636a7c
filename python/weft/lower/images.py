"""Convolutions and pooling."""

import torch

from .graph import lowers
from .elementwise import LEAST_MASK


@lowers("convolution")
def convolution(self, node, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    image, kernel = self.get(x), self.get(weight)
    flat = len(image.shape) == 3  # one row: an image of height 1
    if flat:
        image = self.reshaped(image, (*image.shape[:2], 1, image.shape[2]))
        kernel = self.reshaped(kernel, (*kernel.shape[:2], 1, kernel.shape[2]))
        stride, padding, dilation = stride * 2, [0, *padding], [1, *dilation]
        output_padding = [0, *output_padding]
    if len(image.shape) != 4:
        self.refuse(node, f"an input of {len(image.shape)} dims; images have 4, rows have 3")
    same_both(self, node, "strides", stride)
    if transposed and (groups != 1 or any(one != 1 for one in dilation) or len(set(output_padding)) > 1):
        self.refuse(node, "groups, dilation or unequal output_padding of a transposed convolution")
    for dim, apart in enumerate(dilation, 2):
        size = kernel.shape[dim]
        if apart != 1 and size > 1:  # a larger kernel with zeros between its elements
            wide = torch.zeros(size, (size - 1) * apart + 1)
            wide[torch.arange(size), torch.arange(size) * apart] = 1
            kernel = self.product(node, kernel, dim, wide)
    dilation = [1, 1]
    inputs = [image.name, kernel.name]
    if bias is not None:
        inputs.append(self.get(bias).name)
    attributes = {"strides": stride, "pads": [*padding, *padding], "dilations": dilation, "group": groups}
    shape = self.shape(node) if not flat else (*self.shape(node)[:2], 1, self.shape(node)[2])
    if transposed:
        made = self.emit("ConvTranspose", inputs, shape, node, **attributes, output_padding=output_padding)
    else:
        made = self.emit("Conv", inputs, shape, node, **attributes)
    self.values[node] = self.reshaped(made, self.shape(node))


def same_both(self, node, what, numbers):
    if len(set(numbers)) > 1:
        self.refuse(node, f"{what} {list(numbers)}, of which WeftQL has one for height and width")


def two(numbers):
    return list(numbers) * (2 if len(numbers) == 1 else 1)


def pool(self, node, operation, x, size, stride, padding, ceil_mode, filling, **attributes):
    size, stride, padding = two(size), two(stride or size), two(padding or [0])
    value, shape = self.get(x), self.shape(node)
    if len(shape) == 3:  # an image without a batch
        value, shape = self.reshaped(value, (1, *value.shape)), (1, *shape)
    if value.shape[2] == size[0] == 1:  # a row: its height is not moved over
        stride[0] = stride[1]
    for what, numbers in (("windows", size), ("strides", stride), ("padding", padding)):
        same_both(self, node, what, numbers)
    for d in (0, 1):  # ceil_mode: a last window that begins inside and ends outside
        more = (shape[d + 2] - 1) * stride[d] + size[d] - value.shape[d + 2] - 2 * padding[d]
        if ceil_mode and more > 0:
            if filling is None:
                self.refuse(node, "ceil_mode, with windows that end outside of the image")
            value = self.padded(node, value, d + 2, 0, more, filling)
    made = self.emit(operation, [value.name], shape, node, kernel_shape=size, strides=stride,
                     pads=[*padding, *padding], **attributes)
    self.values[node] = self.reshaped(made, self.shape(node))


@lowers("max_pool2d_with_indices", "max_pool2d")
def max_pool(self, node, x, size, stride=None, padding=(0,), dilation=(1,), ceil_mode=False):
    if any(one != 1 for one in dilation):
        self.refuse(node, "dilations other than 1")
    pool(self, node, "MaxPool", x, size, stride, padding, ceil_mode, LEAST_MASK)


@lowers("avg_pool2d")
def avg_pool(self, node, x, size, stride=None, padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):
    if divisor is not None or (not count_include_pad and any(padding)):
        self.refuse(node, "averages whose divisor is not the size of the window")
    pool(self, node, "AveragePool", x, size, stride, padding, ceil_mode, None, count_include_pad=1)


@lowers("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def adaptive_pool(self, node, x, size):
    """Averages of equal or overlapping ranges: a product along each dim."""
    if list(size) == [1, 1]:
        self.give(node, "GlobalAveragePool", [self.get(x).name])
        return
    value = self.get(x)
    for dim in (2, 3):
        many, few = value.shape[dim], self.shape(node)[dim]
        if many == few:
            continue
        weights = torch.zeros(many, few)
        for place in range(few):
            begin, end = place * many // few, -(-(place + 1) * many // few)
            weights[begin:end, place] = 1 / (end - begin)
        value = self.product(node, value, dim, weights)
    self.values[node] = value
