"""Estimates of several rounds side by side: the change between two, and a trend over all."""
