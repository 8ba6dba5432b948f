"""What makes the state file outlive a power cut, and a damaged one known as such."""

from tests.durability.safeguards.mutation import Mutation

POWER = "tests/durability/test_power.py"
CUT = f"{POWER}::test_a_power_cut_at_any_moment_loses_nothing_acknowledged_and_invents_nothing"
FIRST_CUT = f"{POWER}::test_a_power_cut_during_the_very_first_start_costs_nothing_and_is_no_loss"
QUARANTINE = "tests/store/test_quarantine.py"

STATE = (
    Mutation(
        "the check sum of a run is not compared",
        (("store/reading.py", 'whole = crc == crc_of("run", columns)', "whole = True"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of an event is not compared",
        (("store/reading.py", 'crc == crc_of("event", columns) and', ""),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of a message is not compared",
        (("store/reading.py", 'if crc != crc_of("outbox", columns):', "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the check sum of a setting is not compared",
        (("store/reading.py", "if not isinstance(value, str) or crc !=", "if not isinstance(value, str) or False and crc !="),),
        (QUARANTINE,),
    ),
    Mutation(
        "a commit is not flushed",
        (("store/layout.py", '("synchronous", "FULL", 2)', '("synchronous", "NORMAL", 1)'),),
        (CUT,),
    ),
    Mutation(
        "the journal is SQLite's default",
        (
            ("store/layout.py", '("journal_mode", "WAL", "wal")', '("journal_mode", "DELETE", "delete")'),
            ("store/layout.py", '("locking_mode", "EXCLUSIVE", "exclusive")', '("locking_mode", "NORMAL", "normal")'),
            ("store/opening.py", 'db.rows("PRAGMA locking_mode = EXCLUSIVE")', "pass"),
        ),
        (CUT,),
    ),
    Mutation(
        "a commit leaves no witness",
        (("store/store.py", "if changes.touched is not None:", "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "a state has no sentinel",
        (("store/opening.py", "if read_sentinel(folder) != epoch:", "if False:"),),
        (QUARANTINE,),
    ),
    Mutation(
        "the sentinel is not flushed before it takes its place",
        (("store/folder.py", '.encode())\n        os.fsync(fd)\n', ".encode())\n"),),
        (FIRST_CUT,),
    ),
    Mutation(
        "the folders above a new state are not flushed",
        (("store/folder.py", "            sync_folder(above)\n", "            pass\n"),),
        (CUT,),
    ),
    Mutation(
        "a start does not say that it has begun",
        (("store/opening.py", '    write_meta(db, "open", "1")\n', ""),),
        (CUT,),
    ),
    Mutation(
        "a row counts as ended whose end found no room",
        (("journal.py", "                row = tx.set_state(row.row", "                row = self.row = tx.set_state(row.row"),),
        ("tests/store/test_held.py",),
    ),
)  # fmt: skip
