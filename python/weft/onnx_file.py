"""Writes ONNX files in the protobuf wire format, in which each field is preceded by its tag and
length.

Field numbers are those of onnx.proto. Large tensors are stored one after the other in a second
file, so that they need not be in memory all at once.
"""

import os
import struct

FLOAT, INT64, BOOL = 1, 7, 9
BESIDE_FROM_BYTES = 256
OPSET = 20
IR_VERSION = 9


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def whole(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def real(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


class Tensor:
    def __init__(self, kind, shape, data):
        self.kind, self.shape, self.data = kind, shape, data

    def head(self, name):
        return b"".join(whole(1, dim) for dim in self.shape) + whole(2, self.kind) + text(8, name)


def attribute(name, value):
    kinds = {"f": 1, "i": 2, "s": 3, "tensor": 4, "ints": 7}
    if isinstance(value, Tensor):
        kind, body = "tensor", text(5, value.head("") + text(9, value.data))
    elif isinstance(value, float):
        kind, body = "f", real(2, value)
    elif isinstance(value, int):
        kind, body = "i", whole(3, value)
    elif isinstance(value, str):
        kind, body = "s", text(4, value)
    else:
        kind, body = "ints", b"".join(whole(8, int(one)) for one in value)
    return text(1, name) + body + whole(20, kinds[kind])


class OnnxFile:
    """Builds a graph; `save` writes it."""

    def __init__(self, name):
        self.name = name
        self.nodes = []  # (operation, name, inputs, outputs, attributes); an operation may be DOMAIN.NAME
        self.tensors = {}  # by name; data may be a function that returns the bytes
        self.inputs = []  # (name, kind, shape)
        self.outputs = []  # (name, shape)

    def add(self, operation, inputs, outputs, name="", **attributes):
        """`outputs`: a name, or several."""
        outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        self.nodes.append((operation, name, list(inputs), outputs, attributes))

    def tensor(self, name, kind, shape, data):
        self.tensors[name] = Tensor(kind, tuple(shape), data)

    def fixed(self, name, shape, data):
        """Adds a constant, which is not trained."""
        self.nodes.append(("Constant", "", [], [name], {"value": Tensor(FLOAT, tuple(shape), data)}))

    def rename(self, value, name):
        """Renames a value; a value that no node computes gets an Identity node."""
        if not any(value in node[3] for node in self.nodes):
            self.add("Identity", [value], name)
            return
        def renamed(names):
            return [name if one == value else one for one in names]

        self.nodes = [(operation, own, renamed(inputs), renamed(outputs), attributes)
                      for operation, own, inputs, outputs, attributes in self.nodes]

    def drop_unread(self):
        """Removes nodes and tensors that no output depends on. Returns the names of the tensors."""
        needed = {name for name, _ in self.outputs}
        kept = []
        for node in reversed(self.nodes):
            if any(one in needed for one in node[3]):
                needed.update(node[2])
                kept.append(node)
        self.nodes = kept[::-1]
        unread = [name for name in self.tensors if name not in needed]
        self.tensors = {name: tensor for name, tensor in self.tensors.items() if name in needed}
        return unread

    def save(self, path):
        """Writes `path`, and `path`.data if there are large tensors. Returns the files written."""
        beside = path + ".data"
        graph = bytearray()
        domains = {""}
        for operation, name, inputs, outputs, attributes in self.nodes:
            *domain, operation = operation.split(".")
            node = b"".join(text(1, one) for one in inputs) + b"".join(text(2, one) for one in outputs)
            node += text(3, name) + text(4, operation)
            node += b"".join(text(5, attribute(key, value)) for key, value in attributes.items())
            if domain:
                node += text(7, domain[0])
                domains.update(domain)
            graph += text(1, node)
        graph += text(2, self.name)
        offset = 0
        with open(beside, "wb") as data_file:
            for name, stored in self.tensors.items():
                data = stored.data() if callable(stored.data) else stored.data
                tensor = stored.head(name)
                if len(data) < BESIDE_FROM_BYTES:
                    tensor += text(9, data)
                else:
                    data_file.write(data)
                    places = {"location": os.path.basename(beside), "offset": offset, "length": len(data)}
                    tensor += b"".join(text(13, text(1, key) + text(2, str(value))) for key, value in places.items())
                    tensor += whole(14, 1)
                    offset += len(data)
                graph += text(5, tensor)
        for field, values in ((11, self.inputs), (12, [(name, FLOAT, shape) for name, shape in self.outputs])):
            for name, kind, shape in values:
                dims = b"".join(text(1, whole(1, dim)) for dim in shape)
                graph += text(field, text(1, name) + text(2, text(1, whole(1, kind) + text(2, dims))))
        model = whole(1, IR_VERSION) + text(2, "weft.export") + text(7, bytes(graph))
        model += b"".join(text(8, text(1, one) + whole(2, 1 if one else OPSET)) for one in sorted(domains))
        with open(path, "wb") as file:
            file.write(model)
        if offset:
            return [path, beside]
        os.remove(beside)
        return [path]
