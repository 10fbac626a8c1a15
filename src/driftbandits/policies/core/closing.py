"""How decisions are closed (with their reward, as missing, or forgotten), and when what was told is learned.

Part of `Policy`, between its public methods and the hooks: everything here is called from inside a change.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from driftbandits.errors import DelayWarning, HeldRewardsWarning, LateRewardsWarning
from driftbandits.policies.core.hooks import UNTIL_TOLD, PolicyHooks
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.core.renumbered import GONE
from driftbandits.types import Floats, Ints

LATE_BEFORE_WARNING = 32  # rewards that came too late
LATE_SHARE = 0.05  # of all rewards that came


class Closing(PolicyHooks):
    """What happens to decisions between `ask` and what is learned from them."""

    # --- with a reward ------------------------------------------------------------------------------------------

    def _take_reward(self, row: Row, reward: float) -> None:
        """Learn the reward of a decision that was struck out, or let it wait for earlier ones."""
        if self.order == "asked" and self._must_wait(row.id):
            self._line.hold(row, reward)
            self._release_held()
            return
        if row.arm == GONE:
            self.late += 1
            return
        delays, late = self._delays, self.rounds - 1 - row.id
        if delays.watching and (late or not delays.idle):
            self._watch_delays(delays.see(row.id, row.arm, late, reward))
            delays.calls += 1
        self._version += 1
        self._learn_one(row, reward)

    def _must_wait(self, ident: int) -> bool:
        """Whether an earlier decision is open, or others that waited come first."""
        oldest = self._pending.oldest()
        return len(self._line) > 0 or (oldest is not None and oldest < ident)

    def _take_rewards(self, rows: npt.NDArray[np.void], rewards: Floats) -> None:
        """`_take_reward` for rows of the table, in the order of their ids."""
        if self.order == "told":
            self._sample_delays(rows, rewards)
            self._learn_released(Feedback.of(rows, rewards))
            return
        oldest = self._pending.oldest()
        ready = len(rows) if oldest is None else int(np.searchsorted(rows["id"], oldest))
        if len(self._line):  # what waits may lie between
            self._line.hold_many(rows, rewards)
            self._release_held()
        else:
            self._line.hold_many(rows[ready:], rewards[ready:])
            self._learn_released(Feedback.of(rows[:ready], rewards[:ready]))
            self._watch_line()

    def _release_held(self) -> None:
        """Learn what waited for decisions that are closed by now."""
        first_open = self._first_open()
        if self._line.first < first_open:
            self._learn_released(self._line.release(first_open))
        self._watch_line()

    def _learn_released(self, feedback: Feedback) -> None:
        """Learn rewards in order; those of arms that are no longer offered are counted only."""
        offered = feedback.arms != GONE
        if not offered.all():
            self.late += int(np.count_nonzero(~offered))
            feedback = feedback.chosen(offered)
        if len(feedback):
            self._version += 1
            self._learn(feedback)

    # --- without one --------------------------------------------------------------------------------------------

    def _close_missing(self, rows: npt.NDArray[np.void]) -> None:
        """Close decisions that were struck out as missing; in the order of their ids."""
        self.expired += len(rows)
        if self._missing_value is None:
            self._close_forgotten(rows)
            self.forgotten += len(rows)
            return
        rows = rows[rows["arm"] != GONE]
        if len(rows):
            self._history.left -= len(rows)  # they are learned as rewards are, and where most are missing so is history
            self._take_rewards(rows, np.full(len(rows), self._missing_value))
        else:
            self._release_held()

    def _close_forgotten(self, rows: npt.NDArray[np.void]) -> None:
        """Close decisions that were struck out as forgotten."""
        self._lose(rows[rows["arm"] != GONE])
        self._release_held()

    def _close_old(self) -> None:
        """After rounds were asked: close what `pending_limit` dropped and what patience has run out for."""
        pending = self._pending
        if pending.fallen:
            self._close_forgotten(pending.pick_up())
        if self.patience is None:
            return
        last = self.rounds - 1 - self.patience
        oldest = pending.oldest()
        if oldest is not None and oldest <= last:
            pending.gather()
            self._close_missing(pending.take(pending.before(last + 1)))

    def _rounds_to_close(self) -> int:
        """For how many rounds from now at most the last one alone can close decisions that others wait for."""
        if self.order == "told":
            return UNTIL_TOLD
        left = self._pending.limit - len(self._pending) + 1
        if self.patience is not None:
            left = min(left, self._first_open() + self.patience - self.rounds + 1)
        return max(left, 1)

    def _rounds_of_patience(self) -> int:
        """How many rounds may be asked before anything is told, without a decision closing."""
        return UNTIL_TOLD if self.patience is None else max(self._first_open() + self.patience - self.rounds, 1)

    # --- what is to be said about it ----------------------------------------------------------------------------

    def _sample_delays(self, rows: npt.NDArray[np.void], rewards: Floats) -> None:
        """Rewards told in one call overtake nothing within it, so a batch told whole begins no sample."""
        delays, ids = self._delays, rows["id"]
        whole = ids[-1] - ids[0] + 1 == len(rows) and ids[-1] + 1 == self.rounds
        if not delays.watching or (delays.idle and whole):
            return
        offered = rows["arm"] != GONE
        ids = ids[offered]
        due = delays.see_many(ids, rows["arm"][offered], self.rounds - 1 - ids, rewards[offered])
        delays.calls += 1
        self._watch_delays(due)

    def _watch_delays(self, due: bool) -> None:
        if due:
            found = self._delays.dependence()
            if found is not None:
                self._delays.stop()
                self._notice = DelayWarning(found.advice(self._scale))

    def _count_late(self, ids: Ints) -> None:
        """Count rewards of decisions that are closed; looked at each time they have doubled."""
        before = self.late
        self.late += len(ids)
        if self._said_late or self.late.bit_length() == before.bit_length():
            return
        missed = min(self.late, self.expired)  # others are told twice, or of arms that are gone
        forgotten = self.forgotten - (self.expired if self._missing_value is None else 0)
        told = self.rounds - len(self._pending) - self.expired - forgotten - self._pending.dropped
        if missed < LATE_BEFORE_WARNING or missed < LATE_SHARE * (missed + told):
            return
        self._said_late = True
        after = self.rounds - 1 - int(ids[-1])
        longer = f"build the policy with a patience above {self.patience}"
        cure = "call expire() later" if self.patience is None else longer
        self._notice = LateRewardsWarning(
            f"{missed:,} rewards came after their decision was closed as missing, {told:,} in time: those are not "
            f"learned, and their arms look worse or better than they are. The last came {after:,} rounds after its "
            f"decision; {cure}, so that nearly all rewards come before"
        )

    def _watch_line(self) -> None:
        """What waits has a limit too: beyond it, the decision that it waits for is dropped."""
        if len(self._line) > self._pending.limit:
            self._pending.drop_oldest()
            self._close_forgotten(self._pending.pick_up())
        if self.patience is None and self._line.is_long():
            self._notice = HeldRewardsWarning(
                f"decision {self._first_open()} is open, and {len(self._line):,} rewards of later ones wait for it: "
                f"nothing is learned any more. forget() or expire() decisions whose reward will not come, or build the "
                f"policy with patience=..., the number of rounds after which a reward counts as missing"
            )

    def _take_notice(self) -> UserWarning | None:
        """The warning that a change has led to, to be given after it."""
        notice, self._notice = self._notice, None
        return notice

    def _say(self, warning: UserWarning | None) -> None:
        """Warn whoever called a public method, or tell the one who listens in their place."""
        if warning is None:
            return
        if self._listener is None:
            warnings.warn(warning, stacklevel=4)  # over the public method and its guard
        else:
            self._listener(warning)
