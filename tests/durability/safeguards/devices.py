"""The safeguards of tools that are devices on MQTT, each as the change that takes it away. Runs nothing."""

from tests.durability.safeguards.mutation import Mutation

TALK = "tests/mqtt/test_talk.py"
MESSAGE = "tests/device/test_message.py"
CANCEL = "tests/e2e/test_device_cancel.py"

DEVICES = (
    Mutation(
        "a message goes to a device before its answer can be heard",
        (("mqtt/talk.py", 'self.stage = "subscribing" if self._ungranted else "ready"', 'self.stage = "ready"'),),
        (TALK,),
    ),
    Mutation(
        "what was kept is taken for a device's answer",
        (("mqtt/talk.py", "not self.sent or incoming.retained or", "not self.sent or"),),
        (TALK,),
    ),
    Mutation(
        "what a device said before the request is taken for its answer",
        (("mqtt/talk.py", "not self.sent or incoming.retained or", "incoming.retained or"),),
        (TALK,),
    ),
    Mutation(
        "a request that comes back is taken for its answer",
        (("mqtt/talk.py", " or _same(incoming, self.ask.out)", ""),),
        (TALK,),
    ),
    Mutation(
        "a device that says it is away is asked",
        (("mqtt/talk.py", "if self.ask.away(incoming.topic, incoming.payload):", "if False:"),),
        ("tests/test_exchanged.py", "-k", "away"),
    ),
    Mutation(
        "what was sent is sent again over the next connection",
        (("mqtt/talk.py", 'if self.sent:\n            self._miss("broker_gone", reason)\n        elif', "if"),),
        (TALK,),
    ),
    Mutation(
        "a broker that went in the middle leaves nothing open",
        (("loop.py", '        "broker_gone",\n', ""),),
        ("tests/e2e/test_device_kills.py", "-k", "once and broker"),
    ),
    Mutation(
        "what a device must do once goes as a broker may deliver twice",
        (("device/message.py", 'or (tool.effect == "once" and tool.verify is None):', "or False:"),),
        (MESSAGE,),
    ),
    Mutation(
        "what acts once and can be verified goes as a broker may deliver twice",
        (("toolhost/exchanges.py", 'said.get("qos", 0 if table.get("effect") == "once" else 1)', 'said.get("qos", 1)'),),
        ("tests/toolhost/test_exchanges.py",),
    ),
    Mutation(
        "a toggle may be declared as what may be done twice",
        (("toolhost/exchanges.py", "if word := toggle_in(topic, payload):", "if False and (word := toggle_in(topic, payload)):"),),
        ("tests/toolhost/test_exchanges.py",),
    ),
    Mutation(
        "an argument may make a toggle",
        (("device/message.py", 'if publish and tool.effect != "once" and (word', "if False and (word"),),
        (MESSAGE,),
    ),
    Mutation(
        "an argument may lead to the nodes' own topics",
        (("device/message.py", "if reaches(filled, root):", "if False:"),),
        (MESSAGE,),
    ),
    Mutation(
        "a declaration may lead to the nodes' own topics",
        (("device/topic.py", "if can_reach(template, tool.parameters, root):", "if False:"),),
        ("tests/toolhost/test_probes.py",),
    ),
    Mutation(
        "a probe that was dropped is not missed",
        (("toolhost/probes.py", "good, wrong = without_wrong_probes(apart)", "good, wrong = apart, ()"),),
        ("tests/toolhost/test_probes.py",),
    ),
    Mutation(
        "a message waits at the broker for a device after its call has ended",
        (("exchanged.py", "expires_in_s = ceil(seconds) + 1", "expires_in_s = None"),),
        ("tests/test_exchanged.py", "-k", "after_its_time"),
    ),
    Mutation(
        "a connection for devices may cost the node its own",
        (("mqtt/beside.py", 'known = self._link().alone if self._link is not None else ""', 'known = ""'),),
        ("tests/mqtt/test_beside.py",),
    ),
    Mutation(
        "connections for devices cost the node its own again and again",
        (("mqtt/beside.py", "self._sharing.clashed(state.last_error, now_s)", "pass"),),
        ("tests/mqtt/test_beside.py",),
    ),
    Mutation(
        "a session that the controls made is taken for an older node's",
        (("mqtt/link.py", "self._session_made |= not present", "pass"),),
        ("tests/mqtt/test_controls.py",),
    ),
    Mutation(
        "a cancelled call that a device may have heard is said not to have been sent",
        (("exchanged.py", "bool(self.message.publish) and not self.end.sent and", "bool(self.message.publish) and"),),
        (CANCEL, "-k", "cancel_of"),
    ),
    Mutation(
        "a cancelled call that nobody heard is unknown",
        (("exchanged.py", "unheard = bool(self.message.publish) and", "unheard = False and"),),
        (CANCEL, "-k", "cancel_of"),
    ),
    Mutation(
        "a call that a stop cut off before it was sent has failed",
        (("runner.py", 'or (fault == "not_sent" and not held.run.open[0].intended)', "or False"),),
        (CANCEL, "-m", "slow", "-k", "stop"),
    ),
)  # fmt: skip
