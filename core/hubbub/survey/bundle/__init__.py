"""The form of a bundle: tables of many attributes, each device asked for one sampled part of them."""

from hubbub.lazy import attach

attach(__name__)
