"""Sixteen tasks over a cellar, written after the rules were done, and asked once.

Nothing was changed to suit them, neither a rule nor an example; what is changed later on has to say so here. (They
brought to light that a tool with a yes or no could not be asked for at all, which was mended; two are refused.)
"""

from tests.forty.tasks import Step, Task, acting, guarded, impossible, reading

KEPT_BACK: tuple[Task, ...] = (
    reading("cellar", "What does the sump gauge show?", "read_gauge", name="sump"),
    reading("cellar", "How cold is the freezer?", "read_gauge", name="freezer"),
    reading("cellar", "Is the workshop plug live?", "plug_state", room="workshop"),
    reading("cellar", "Temperature of the wine rack?", "read_gauge", name="wine rack"),
    acting("cellar", "Run the pump for 45 seconds.", "run_pump", seconds=45),
    acting("cellar", "Please switch the stairs light on.", "set_light", room="stairs", on=True),
    acting("cellar", "Turn the freezer to -25 degrees.", "set_freezer", celsius=-25),
    acting("cellar", "Light off in the workshop.", "set_light", room="workshop", on=False),
    guarded(
        "cellar", "If the sump rises above 35, run the pump for 90 seconds.",
        Step("run_pump", {"seconds": 90}), {"sump": 36}, {"sump": 35},
    ),
    guarded(
        "cellar", "Set the freezer to -28 if it is warmer than -12.",
        Step("set_freezer", {"celsius": -28}), {"freezer": -11}, {"freezer": -13},
    ),
    guarded(
        "cellar", "Switch the workshop light on if the stairs plug is dead.",
        Step("set_light", {"room": "workshop", "on": True}), {"stairs": "dead"}, {"stairs": "live"},
    ),
    guarded(
        "cellar", "Pump for 20 seconds when the sump has at least 15 cm.",
        Step("run_pump", {"seconds": 20}), {"sump": 15}, {"sump": 14},
    ),
    impossible("cellar", "Open a bottle of wine."),
    impossible("cellar", "Set the wine rack to 12 degrees."),
    impossible("cellar", "Run the pump for 5 minutes."),
    impossible("cellar", "Switch the laundry light off and lock the door."),
)  # fmt: skip
