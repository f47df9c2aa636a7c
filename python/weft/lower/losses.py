"""Cross-entropy and mean squared error; dropout, which is left out."""

from .graph import SAME_ORDER, lowers, short, stem


@lowers("_log_softmax", "log_softmax")
def log_softmax(self, node, x, dim, *_):
    users = [user for user in node.users if stem(user) not in SAME_ORDER]
    if any(not short(user).startswith("nll_loss") for user in users):
        last = dim % len(self.shape(x)) == len(self.shape(x)) - 1
        if not last or any(short(user).startswith("nll_loss") for user in users):
            self.refuse(node, "only before nll_loss, or along the last dim")
        value = self.get(x)
        rows = (*value.shape[:-1], 1)
        most = self.emit("ReduceMax", [value.name, self.wholes([len(rows) - 1])], rows, node, keepdims=1)
        apart = self.emit("Sub", [value.name, most.name], value.shape, node)
        powers = self.emit("Exp", [apart.name], value.shape, node)
        total = self.emit("ReduceSum", [powers.name, self.wholes([len(rows) - 1])], rows, node, keepdims=1)
        whole = self.emit("Log", [total.name], rows, node)
        self.give(node, "Sub", [apart.name, whole.name])
        return
    node.meta["scores"] = (x, dim)
    self.values[node] = self.loose(x)


@lowers("nll_loss_forward", "nll_loss2d_forward")
def cross_entropy(self, node, scores, labels, weight=None, reduction=1, ignore_index=-100):
    if weight is not None or reduction != 1 or "scores" not in scores.meta:
        self.refuse(node, "only means of what log_softmax gives, all labels alike")
    if ignore_index >= 0:
        self.refuse(node, f"ignore_index {ignore_index}; WeftQL ignores negative labels, such as -100")
    of, dim = scores.meta["scores"]
    known = self.loose(labels)
    if known.name not in self.whole_inputs:
        self.refuse(node, "labels that are computed, such as a slice of them: pass them as an input")
    if len(self.shape(of)) > 2 and dim % len(self.shape(of)) == 1:
        x = self.get(of)
    else:
        x = self.loose(of)
        if x.shape[:-1] != known.shape:
            x, known = self.get(of), self.get(labels)
        # ONNX expects classes in the second dim.
        rank = len(x.shape)
        if rank > 2:
            x = self.turned(x, [0, rank - 1, *range(1, rank - 1)])
    self.values[node] = self.emit("SoftmaxCrossEntropyLoss", [x.name, known.name], (), node, reduction="mean")


@lowers("mse_loss")
def mean_square(self, node, a, b, reduction=1):
    if reduction != 1:
        self.refuse(node, "only means")
    error = self.emit("Sub", [self.get(a).name, self.get(b).name], self.shape(a), node)
    square = self.emit("Mul", [error.name, error.name], error.shape, node)
    self.values[node] = self.emit("ReduceMean", [square.name], (), node, keepdims=0)


@lowers("native_dropout", "dropout")
def dropout(self, node, x, p=0.5, *_):
    self.notes.append(f"{node.meta.get('place')}: dropout of {p} is left out")
    self.pass_on(node, x)
