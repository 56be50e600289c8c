"""A replay does what the program would do eagerly: pieces of programs, in many orders of their streams' work."""

from __future__ import annotations

import pytest
from helpers.replays import Conditions, Operands, Piece, check, fork

import tensorplay as tp
from tensorplay import Tensor, cuda, nn

pytestmark = pytest.mark.usefixtures("gpu")

SEEDS = range(24)
PIECES: dict[str, Piece] = {}


def piece(function: Piece) -> Piece:
    """Adds a piece to the list."""
    PIECES[function.__name__] = function
    return function


# -- one stream --------------------------------------------------------------------------------------


@piece
def elementwise(o: Operands, _: Conditions) -> list[Tensor]:
    chained = ((o.x + 1) * o.y - o.x.abs()).clamp(-2, 2).exp()
    return [chained, o.half.float().tanh().to(tp.float16), o.n // 7, o.flags & (o.x > 0), tp.where(o.flags, o.x, o.y)]


@piece
def reductions(o: Operands, _: Conditions) -> list[Tensor]:
    return [o.x.sum(), o.x.mean(0), o.y.max(), o.n.sum(1), o.flags.any(0), o.x.argmax(1), o.x.cumsum(1), o.x.std()]


@piece
def products(o: Operands, _: Conditions) -> list[Tensor]:
    return [o.x @ o.y.T, tp.einsum("ij,ij->i", o.x, o.y), o.n @ o.n.T, o.half @ o.half.T]


@piece
def normalisation(o: Operands, _: Conditions) -> list[Tensor]:
    return [nn.functional.softmax(o.x, -1), nn.functional.layer_norm(o.y, (7,)), nn.functional.gelu(o.x)]


@piece
def indexing(o: Operands, _: Conditions) -> list[Tensor]:
    picked = o.x[o.rows]
    o.n.index_add_(0, o.rows[:2], o.n[2:4])
    o.x[:, 1] = o.y[:, 2]
    return [picked, o.y.gather(1, (o.n % 7).abs()), o.y.index_select(0, o.rows), nn.functional.embedding(o.rows, o.y)]


@piece
def ordering(o: Operands, _: Conditions) -> list[Tensor]:
    values, places = o.x.sort(1)
    best, where = o.n.topk(3, 1)
    return [values, places, best, where]


@piece
def copies(o: Operands, _: Conditions) -> list[Tensor]:
    o.y.copy_(o.x)
    o.y[::2, 1:].copy_(o.n[::2, 1:])
    transposed = o.x.T.contiguous()
    return [transposed, o.x.to(tp.float16), o.n.float(), o.x.clone(), tp.cat([o.x, o.y]), tp.stack([o.x, o.y], 1)]


@piece
def fills(o: Operands, _: Conditions) -> list[Tensor]:
    o.x[1:3].zero_()
    o.y.fill_(2.5)
    return [tp.zeros(5, device="cuda"), tp.full((3,), 9, device="cuda"), tp.arange(11, device="cuda"), o.x + o.y]


@piece
def nothing_at_all(o: Operands, _: Conditions) -> list[Tensor]:
    empty = o.x[:0] + 1
    return [empty, empty.sum(0), tp.cat([empty, o.x])]


@piece
def changes_in_place(o: Operands, _: Conditions) -> list[Tensor]:
    o.x.add_(1).mul_(o.y)
    o.x += o.x.sum()
    o.n[2:].sub_(o.n[:-2].clone())
    return [o.x, o.x.view(-1)[::3]]


@piece
def memory_that_is_used_again(o: Operands, _: Conditions) -> list[Tensor]:
    kept, value = [], o.x
    for i in range(12):
        value = (value * 0.5 + o.y).abs()  # what was `value` is free to be used again
        if i % 4 == 0:
            kept.append(value.sum(1))
    large = tp.ones(300_000, device="cuda")
    total = large.sum()
    del large
    return [value, *kept, total, tp.full((300_000,), 2.0, device="cuda").sum()]


@piece
def random_numbers(o: Operands, _: Conditions) -> list[Tensor]:
    o.x.normal_(1, 2)
    drawn = tp.rand(5, device="cuda")
    return [drawn, o.x * o.y, tp.randn(3, 3, device="cuda"), tp.randint(0, 50, (4,), device="cuda")]


# -- several streams ---------------------------------------------------------------------------------


@piece
def a_diamond(o: Operands, _: Conditions) -> list[Tensor]:
    o.x.add_(1)
    with fork():
        left = o.x.exp()
    right = o.x * o.y
    return [left + right, left, right]


@piece
def branches_of_branches(o: Operands, _: Conditions) -> list[Tensor]:
    parts = []
    with fork():
        parts.append(o.x.cos())
        with fork():
            parts.append(parts[0] * 2)
        parts.append(parts[1] + o.y)
    with fork():
        parts.append(parts[2] - parts[0])
    return [*parts, parts[-1].sum()]


@piece
def branches_side_by_side(o: Operands, _: Conditions) -> list[Tensor]:
    here = cuda.current_stream()
    sides = [cuda.Stream() for _ in range(4)]
    results = []
    for number, side in enumerate(sides):
        side.wait_stream(here)
        with cuda.stream(side):
            value = o.x + number
            for _ in range(3):
                value = value * o.y + 1  # each branch uses its own memory again
            results.append(value)
    for side in sides:
        here.wait_stream(side)
    return [*results, tp.stack(results).sum(0)]


@piece
def events_between_branches(o: Operands, _: Conditions) -> list[Tensor]:
    here, side = cuda.current_stream(), cuda.Stream()
    first = o.x * 2
    made = here.record_event()
    later = first + 1
    side.wait_event(made)
    with cuda.stream(side):
        second = first - o.y
        done = cuda.Event()
        done.record()
    done.wait()
    return [later + second]


@piece
def memory_that_crosses_streams(o: Operands, _: Conditions) -> list[Tensor]:
    here, side, results = cuda.current_stream(), cuda.Stream(), []
    for number in range(4):
        source = o.x + number
        side.wait_stream(here)
        with cuda.stream(side):
            results.append(source.sum(1))
        source.record_stream(side)
        del source  # `side` may not be through with it
        results.append((o.y - number) * 3)
    here.wait_stream(side)
    return [*results, o.x + o.y]


# -- conditions --------------------------------------------------------------------------------------


@piece
def an_if(o: Operands, conditions: Conditions) -> list[Tensor]:
    o.x.mul_(2)
    conditions.run_if(o.flag, lambda: o.x.add_(o.y * 3))
    return [o.x + 1]


@piece
def a_while(o: Operands, conditions: Conditions) -> list[Tensor]:
    going = o.rounds > 0

    def body() -> None:
        o.x.mul_(0.5).add_(o.y)
        o.rounds.sub_(1)
        going.copy_(o.rounds > 0)

    conditions.run_while(going, body)
    return [o.x.sum()]


@piece
def an_if_in_a_while(o: Operands, conditions: Conditions) -> list[Tensor]:
    going, count = o.rounds > 0, o.rounds * 0

    def inner() -> None:
        o.x.add_(o.y)
        count.add_(1)

    def body() -> None:
        conditions.run_if((o.rounds % 2) == 0, inner)
        o.rounds.sub_(1)
        going.copy_(o.rounds > 0)

    conditions.run_while(going, body)
    return [count, o.x * 2]


@piece
def branches_around_conditions(o: Operands, conditions: Conditions) -> list[Tensor]:
    with fork():
        beside = o.y.exp()
        conditions.run_if(o.flag, lambda: beside.add_(1))
    conditions.run_if(~o.flag, lambda: o.x.neg_())
    return [beside + o.x]


@piece
def branches_in_a_body(o: Operands, conditions: Conditions) -> list[Tensor]:
    def body() -> None:
        with fork():
            left = o.x * 3
        o.y.add_(1)
        o.x.copy_(left + o.y)

    conditions.run_if(o.flag, body)
    return [o.x - o.y]


@piece
def random_numbers_in_rounds(o: Operands, conditions: Conditions) -> list[Tensor]:
    going = o.rounds > 0
    before = tp.rand(4, device="cuda")

    def body() -> None:
        o.x.add_(tp.randn(6, 7, device="cuda"))
        o.rounds.sub_(1)
        going.copy_(o.rounds > 0)

    conditions.run_while(going, body)
    return [before, tp.rand(4, device="cuda")]


@pytest.mark.parametrize("name", PIECES)
def test_a_replay_equals_an_eager_run(name: str) -> None:
    for seed in SEEDS:
        check(PIECES[name], seed)
