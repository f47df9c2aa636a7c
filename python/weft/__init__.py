"""Weft beside PyTorch: `python -m weft.export script.py` writes the model of a script as WeftQL."""
