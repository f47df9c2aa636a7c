"""A gated linear layer and the mean squared error."""
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(*sizes, bias=False) for sizes in ((5, 9), (5, 9), (9, 2)))

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x)) / 3 + 1


torch.manual_seed(4)
model = Gated()
inputs = torch.randn(6, 5)
targets = torch.randn(6, 2)
loss = nn.functional.mse_loss
