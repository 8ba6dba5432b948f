"""Two dozen tasks over a greenhouse, in other words and for other tools than the forty.

Written before anything was measured with them, and nothing is to be changed to suit them: they tell whether a rule
that was found with the forty in view holds elsewhere.
"""

from tests.forty.tasks import Step, Task, acting, guarded, impossible, reading

HELD_OUT: tuple[Task, ...] = (
    reading("greenhouse", "How moist is the soil?", "read_probe", name="soil"),
    reading("greenhouse", "What's the temperature of the air at the moment?", "read_probe", name="air"),
    reading("greenhouse", "How much rain fell?", "read_probe", name="rain"),
    reading("greenhouse", "Give me the sun reading.", "read_probe", name="sun"),
    reading("greenhouse", "Did somebody lock the south door?", "door_state", name="south"),
    acting("greenhouse", "Please lock the north door.", "set_door", name="north", latch="locked"),
    acting("greenhouse", "Open up the vents.", "set_vents", state="open"),
    acting("greenhouse", "Shut the vents.", "set_vents", state="closed"),
    acting("greenhouse", "Water the orchids for 8 minutes.", "water", bed="orchids", minutes=8),
    acting("greenhouse", "The tomatoes need 12 minutes of water.", "water", bed="tomatoes", minutes=12),
    acting("greenhouse", "Set the blind to 65 percent.", "set_blind", percent=65),
    guarded(
        "greenhouse", "If the air is above 31, open the vents.",
        Step("set_vents", {"state": "open"}), {"air": 32}, {"air": 31},
    ),
    guarded(
        "greenhouse", "Close the vents if the air is colder than 9.",
        Step("set_vents", {"state": "closed"}), {"air": 8}, {"air": 10},
    ),
    guarded(
        "greenhouse", "Close the vents if the rain is over 2.",
        Step("set_vents", {"state": "closed"}), {"rain": 3}, {"rain": 1},
    ),
    guarded(
        "greenhouse", "Give the herbs 4 minutes of water if the soil is below 25.",
        Step("water", {"bed": "herbs", "minutes": 4}), {"soil": 24}, {"soil": 25},
    ),
    guarded(
        "greenhouse", "Water the orchids for 6 minutes if the soil moisture drops under 35.",
        Step("water", {"bed": "orchids", "minutes": 6}), {"soil": 34}, {"soil": 36},
    ),
    guarded(
        "greenhouse", "Lower the blind to 90 percent when the sun is stronger than 800.",
        Step("set_blind", {"percent": 90}), {"sun": 801}, {"sun": 799},
    ),
    guarded(
        "greenhouse", "Unlock the south door if it is locked.",
        Step("set_door", {"name": "south", "latch": "unlocked"}), {"south": "locked"}, {"south": "unlocked"},
    ),
    impossible("greenhouse", "Feed the cat."),
    impossible("greenhouse", "Open the skylight."),
    impossible("greenhouse", "Water the roses for 5 minutes."),
    impossible("greenhouse", "Open the vents and lower the blind to 30 percent."),
    impossible("greenhouse", "Will it freeze tonight?"),
    impossible("greenhouse", "Don't water the herbs."),
)  # fmt: skip
