"""The bids of an auction as Triton kernels; imported when needed.

A column is a word of 64 bits, its price above its owner, so that one atomic maximum settles who
wins. Many rows bid in rounds of one launch each, some hundred in rounds of a single program, and
the last few one after the other.
"""
# Arguments of kernels have types of Triton's own compiler.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

import torch
import triton
import triton.language as tl

N_ROUNDS = 16  # of bids before the rows that wait are counted
ONE_PROGRAM, MOST_ROUNDS = 512, 4096  # rows that one program lets bid, without new launches
ONE_BY_ONE, MOST_BIDS = 8, 65_536  # rows that bid one after the other, faster than in rounds
PATIENCE = 2  # calls of few rows that get nowhere before they may give up


@triton.jit
def _ordered(bits):
    """Bits of numbers as integers in the order of the numbers, and back again."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _best_bid(COLUMNS, SCORES, FLOORS, WORDS, step, row, k, BK: tl.constexpr, ALONE: tl.constexpr):
    """Best bid of each row: a column, its bid as a word of price and row, and who owns it now.

    The bid is 0 if the row does not wait or gives up.
    """
    waits = row >= 0
    choices = tl.arange(0, BK)[None, :]
    known = waits[:, None] & (choices < k)
    at = row[:, None].to(tl.int64) * k + choices
    floor = tl.load(FLOORS + row, mask=waits, other=0.0)
    columns = tl.load(COLUMNS + at, mask=known, other=0)
    scores = tl.load(SCORES + at, mask=known, other=-3.0e38)
    words = tl.load(WORDS + columns, mask=known, other=0, volatile=not ALONE)
    worth = scores - (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    # Of equally good columns each row begins with another one.
    turn = choices - (row % k)[:, None]
    turn = tl.where(known, tl.where(turn < 0, turn + k, turn), BK + choices)
    key = _ordered(worth.to(tl.int32, bitcast=True)).to(tl.int64) << 16 | (65535 - turn)
    most = tl.max(key, 1)
    best = _ordered((most >> 16).to(tl.int32)).to(tl.float32, bitcast=True)
    chosen = key == most[:, None]
    second = tl.max(tl.where(chosen, -3.0e38, worth), 1)
    column = tl.sum(tl.where(chosen, columns, 0), 1)
    score = tl.sum(tl.where(chosen, scores, 0.0), 1)
    before = tl.sum(tl.where(chosen, words, 0), 1)
    second = tl.maximum(second, floor - 1.0)
    bits = (before >> 32).to(tl.int32)
    price = bits.to(tl.float32, bitcast=True)
    # A smaller step would not show in the worth of a column with a large score.
    raised = price + (best - second + tl.maximum(step, 2.4e-7 * tl.abs(score)))
    # Nor would a step that rounding takes from the price: it always rises.
    bits = tl.maximum(raised.to(tl.int32, bitcast=True), bits + 1)
    word = (bits.to(tl.int64) << 32) | (row + 1).to(tl.int64)
    owner = (before & 4294967295).to(tl.int32) - 1
    return column, tl.where(waits & (best >= floor), word, 0), owner


@triton.jit
def _outcome(WORDS, WANTED, OFFERS, OWNERS, slots, n_slots):
    """Rows that wait in some slots after the last bids, and which of these bids won.

    A slot holds a bid and the owner of the wanted column, or no bid (0) and the row that waits.
    """
    inside = slots < n_slots
    column = tl.load(WANTED + slots, mask=inside, other=0)
    word = tl.load(OFFERS + slots, mask=inside, other=0)
    owner = tl.load(OWNERS + slots, mask=inside, other=-1)
    bids = word > 0
    won = bids & (tl.load(WORDS + column, mask=bids, other=0, volatile=True) == word)
    loser = (word & 4294967295).to(tl.int32) - 1
    row = tl.where(won | (word == 0), owner, loser)
    return column, word, won, row


@triton.jit
def _round(
    COLUMNS, SCORES, FLOORS, WORDS, NEXT, WANTED, OFFERS, OWNERS, step, slots, n_slots, k,
    BK: tl.constexpr,
):  # fmt: skip
    """A bid of each row that waits; returns which slots bid.

    Prices are read from `WORDS`, where the last bids are, and bids go to `NEXT`, so that all rows
    see the same prices. `NEXT` is one round behind; the winners of that round bring it up to date.
    """
    column, word, won, row = _outcome(WORDS, WANTED, OFFERS, OWNERS, slots, n_slots)
    tl.atomic_max(NEXT + column, word, mask=won)
    column, word, owner = _best_bid(COLUMNS, SCORES, FLOORS, WORDS, step, row, k, BK, False)
    bids = word > 0
    tl.atomic_max(NEXT + column, word, mask=bids)
    inside = slots < n_slots
    tl.store(WANTED + slots, column, mask=inside)
    tl.store(OFFERS + slots, word, mask=inside)
    tl.store(OWNERS + slots, tl.where(bids, owner, -1), mask=inside)
    return bids


@triton.jit
def _settle(WORDS, NEXT, WANTED, OFFERS, OWNERS, slots, n_slots):
    """Leave the rows that wait in the slots, and both words of each column alike."""
    column, word, won, row = _outcome(WORDS, WANTED, OFFERS, OWNERS, slots, n_slots)
    tl.store(NEXT + column, word, mask=won)
    tl.store(OWNERS + slots, row, mask=slots < n_slots)


@triton.jit(do_not_specialize=["n_slots", "k"])
def _round_kernel(
    COLUMNS, SCORES, FLOORS, WORDS, NEXT, WANTED, OFFERS, OWNERS, step, n_slots, k,
    BK: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    slots = tl.program_id(0) * BS + tl.arange(0, BS)
    _round(
        COLUMNS, SCORES, FLOORS, WORDS, NEXT, WANTED, OFFERS, OWNERS, step, slots, n_slots, k, BK
    )


@triton.jit(do_not_specialize=["n_slots"])
def _settle_kernel(WORDS, NEXT, WANTED, OFFERS, OWNERS, n_slots, BS: tl.constexpr):
    slots = tl.program_id(0) * BS + tl.arange(0, BS)
    _settle(WORDS, NEXT, WANTED, OFFERS, OWNERS, slots, n_slots)


@triton.jit(do_not_specialize=["n_slots", "k", "n_rounds"])
def _rounds_kernel(
    COLUMNS, SCORES, FLOORS, WORDS, NEXT, WANTED, OFFERS, OWNERS, step, n_slots, k, n_rounds,
    BK: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    """Pairs of rounds by one program, until a quarter of the rows is left."""
    n_waiting = n_slots
    n_done = 0
    while (n_waiting * 4 > n_slots) & (n_done < n_rounds):
        for begin in range(0, n_slots, BS):
            _round(
                COLUMNS, SCORES, FLOORS, WORDS, NEXT, WANTED, OFFERS, OWNERS, step,
                begin + tl.arange(0, BS), n_slots, k, BK,
            )  # fmt: skip
        tl.debug_barrier()
        n_waiting = 0
        for begin in range(0, n_slots, BS):
            bids = _round(
                COLUMNS, SCORES, FLOORS, NEXT, WORDS, WANTED, OFFERS, OWNERS, step,
                begin + tl.arange(0, BS), n_slots, k, BK,
            )  # fmt: skip
            n_waiting += tl.sum(bids.to(tl.int32), 0)
        tl.debug_barrier()
        n_done += 2
    for begin in range(0, n_slots, BS):
        _settle(WORDS, NEXT, WANTED, OFFERS, OWNERS, begin + tl.arange(0, BS), n_slots)


@triton.jit(do_not_specialize=["n_slots", "k", "n_bids"])
def _chain_kernel(
    COLUMNS, SCORES, FLOORS, WORDS, BIDS, WAITING, step, n_slots, k, n_bids, BK: tl.constexpr
):
    """Bids of few rows one after the other; an outbid row bids next, as on the CPU."""
    one = tl.arange(0, 1)
    slot = 0
    n_done = 0
    while (slot < n_slots) & (n_done < n_bids):
        row = tl.load(WAITING + slot + one)
        while (tl.max(row, 0) >= 0) & (n_done < n_bids):
            column, word, owner = _best_bid(COLUMNS, SCORES, FLOORS, WORDS, step, row, k, BK, True)
            tl.store(WORDS + column, word, mask=word > 0)
            tl.store(BIDS + column, word, mask=word > 0)
            row = tl.where(word > 0, owner, -1)
            n_done += 1
            tl.debug_barrier()
        tl.store(WAITING + slot + one, row)
        slot += 1


def bid(
    columns: Any, scores: Any, floors: Any, step: float, words: Any, bids: Any, waiting: Any
) -> None:
    """Let the rows that wait bid for their columns in some rounds, as in plain PyTorch."""
    n_slots, k = len(waiting), columns.shape[1]
    BK = triton.next_power_of_2(k)
    lists = columns, scores, floors
    if n_slots <= ONE_BY_ONE:
        _chain_kernel[(1,)](
            *lists, words, bids, waiting, step, n_slots, k, MOST_BIDS, BK=BK, num_warps=1
        )
        return
    wanted, offers = torch.zeros_like(waiting), torch.zeros_like(waiting, dtype=torch.int64)
    slots = wanted, offers, waiting
    if n_slots <= ONE_PROGRAM:
        _rounds_kernel[(1,)](
            *lists, words, bids, *slots, step, n_slots, k, MOST_ROUNDS,
            BK=BK, BS=max(1, 4096 // BK), num_warps=16,
        )  # fmt: skip
        return
    BS = max(1, 1024 // BK)
    grid = (triton.cdiv(n_slots, BS),)
    for _ in range(N_ROUNDS // 2):
        for pair in ((words, bids), (bids, words)):
            _round_kernel[grid](*lists, *pair, *slots, step, n_slots, k, BK=BK, BS=BS, num_warps=4)
    grid = (triton.cdiv(n_slots, 512),)
    _settle_kernel[grid](words, bids, *slots, n_slots, BS=512, num_warps=4)
