"""Functions of vectors and matrices."""

from __future__ import annotations

from .._handle import Handle
from . import added_products, contraction, products


class Algebra(Handle):
    """The methods. Functions of the same names are made of them: `tensorplay._functions`."""

    __slots__ = ()

    matmul = products.matmul
    mm = products.mm
    bmm = products.bmm
    mv = products.mv
    dot = products.dot
    vdot = products.vdot
    inner = contraction.inner
    outer = products.outer
    ger = products.outer
    kron = products.kron
    addmm, addmm_ = added_products.addmm, added_products.addmm_
    addmv, addmv_ = added_products.addmv, added_products.addmv_
    addr, addr_ = added_products.addr, added_products.addr_
    baddbmm, baddbmm_ = added_products.baddbmm, added_products.baddbmm_
    addbmm, addbmm_ = added_products.addbmm, added_products.addbmm_
