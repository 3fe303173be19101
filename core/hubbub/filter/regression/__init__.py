"""The part of the filter that bounds the loss of answers about scores of several numbers."""
