# SPDX-License-Identifier: GPL-2.0
"""The branch predictor of emulator/model, implemented a second time."""

from collections import deque


class Gshare:
    """Two-bit counters by address and the last outcomes."""

    def __init__(self, bits: int, history_bits: int) -> None:
        self.counters: dict[int, int] = {}
        self.bits = bits
        self.history: deque[bool] = deque([False] * history_bits, history_bits)

    def right(self, pc: int, taken: bool) -> bool:
        history = sum(outcome << place for place, outcome in enumerate(reversed(self.history)))
        slot = (pc // 4 ^ history) % 2**self.bits
        counter = self.counters.get(slot, 0)
        self.counters[slot] = min(3, counter + 1) if taken else max(0, counter - 1)
        self.history.append(taken)
        return taken == (counter > 1)
