"""Three linear layers with a loss defined by the script."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 7), torch.nn.Tanh(),
                            torch.nn.Linear(7, 3))
inputs = (torch.randn(4, 6),)
targets = (torch.tensor([0, 2, 1, 1]),)
loss = torch.nn.CrossEntropyLoss()
