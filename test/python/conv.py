"""Convolutions, batch normalization, max and average pooling, and a linear layer."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2)
        self.out = nn.Linear(6, 5)

    def forward(self, image):
        x = torch.max_pool2d(torch.relu(self.norm(self.first(image))), 2)
        x = torch.relu(self.second(x))
        return self.out(x.mean((2, 3)))


torch.manual_seed(2)
model = Net()
for parameter in model.norm.parameters():
    nn.init.normal_(parameter, mean=1)
inputs = (torch.randn(3, 1, 12, 12),)
targets = (torch.tensor([0, 4, 2]),)
loss = nn.functional.cross_entropy
