"""Forecasts of demand: traffic and its GPUs, GPU-hours of training and of quantization; arrays in, arrays out."""
