"""Weft's tools for PyTorch: `python -m weft.export script.py` converts models to WeftQL."""
