"""The functions of `tensorplay.nn.functional`, by family. All are composed here, once for every backend.

Half types are computed in float32 and rounded once, unless a function says otherwise.
"""
