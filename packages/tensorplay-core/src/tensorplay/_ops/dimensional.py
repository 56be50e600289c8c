"""Functions that work along dimensions: folds, scans, order, and elements by their indices."""

from __future__ import annotations

from .._handle import Handle
from . import distinct, exponentials, extremes, masks, reductions, scans, scattering, selection, sorting, statistics


class Dimensional(Handle):
    """The methods. Functions of the same names are made of them: `tensorplay._functions`."""

    __slots__ = ()

    sum = reductions.sum
    mean = reductions.mean
    prod = reductions.prod
    amax = reductions.amax
    amin = reductions.amin
    any = reductions.any
    all = reductions.all
    count_nonzero = reductions.count_nonzero
    nansum = reductions.nansum
    nanmean = reductions.nanmean
    max = extremes.max
    min = extremes.min
    argmax = extremes.argmax
    argmin = extremes.argmin
    aminmax = extremes.aminmax
    var = statistics.var
    std = statistics.std
    norm = statistics.norm
    softmax = exponentials.softmax
    log_softmax = exponentials.log_softmax
    logsumexp = exponentials.logsumexp
    cumsum, cumsum_ = scans.cumsum, scans.cumsum_
    cumprod, cumprod_ = scans.cumprod, scans.cumprod_
    sort = sorting.sort
    argsort = sorting.argsort
    topk = sorting.topk
    kthvalue = sorting.kthvalue
    median = sorting.median
    unique = distinct.unique
    unique_consecutive = distinct.unique_consecutive
    nonzero = masks.nonzero
    argwhere = masks.argwhere
    masked_select = masks.masked_select
    masked_scatter, masked_scatter_ = masks.masked_scatter, masks.masked_scatter_
    index_select = selection.index_select
    gather = selection.gather
    take = selection.take
    take_along_dim = selection.take_along_dim
    scatter, scatter_ = scattering.scatter, scattering.scatter_
    scatter_add, scatter_add_ = scattering.scatter_add, scattering.scatter_add_
    index_add, index_add_ = scattering.index_add, scattering.index_add_
    index_copy, index_copy_ = scattering.index_copy, scattering.index_copy_
    index_fill, index_fill_ = scattering.index_fill, scattering.index_fill_
    index_put, index_put_ = scattering.index_put, scattering.index_put_
