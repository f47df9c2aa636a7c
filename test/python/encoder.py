"""A torch.nn.TransformerEncoderLayer, with merged attention heads, and the mean squared error."""
import torch
from torch import nn

torch.manual_seed(5)
model = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
for parameter in model.parameters():
    nn.init.normal_(parameter, std=0.4)
inputs = torch.randn(2, 5, 16)
targets = torch.randn(2, 5, 16)
loss = nn.functional.mse_loss
