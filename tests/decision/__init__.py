"""Tests of `rea_edge.decision`: the corpus, its properties, the dialects, the messages for the model."""
