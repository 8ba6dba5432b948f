"""One exchange as a machine: what is told of it, in which order, and how it ends."""

from rea_edge.mqtt import Incoming, Outgoing
from rea_edge.mqtt.talk import PRESENCE_S, Ask, Heard, Missed, Talk

OUT = Outgoing(topic="lamp/set", payload=b"ON")
SAID = {"away": lambda _topic, payload: payload == b"offline"}


def said(topic: str, payload: bytes = b"x", *, retained: bool = False) -> Incoming:
    return Incoming(topic=topic, payload=payload, retained=retained, qos=1)


def begun(ask: Ask, *granted: str, now_s: float = 10.0) -> Talk:
    talk = Talk(ask)
    talk.begin()
    for topic in granted:
        talk.granted(topic, True, now_s)
    return talk


def sent(ask: Ask, *granted: str) -> Talk:
    talk = begun(ask, *granted)
    assert talk.stage == "ready"
    talk.put()
    return talk


def test_nothing_goes_out_before_all_that_must_be_heard_is_granted() -> None:
    talk = begun(Ask(out=OUT, reply="lamp", presence=("here",)), "here")
    assert talk.stage == "subscribing"
    talk.hear(said("here"), 10.0)
    assert talk.stage == "subscribing"
    talk.granted("lamp", True, 10.0)
    assert talk.stage == "ready"


def test_a_topic_that_is_not_granted_ends_it_and_nothing_was_sent() -> None:
    talk = Talk(Ask(out=OUT, reply="lamp"))
    talk.begin()
    talk.granted("lamp", False, 10.0)
    assert talk.end == Missed(why="denied", sent=False, detail="the broker does not let this node read lamp")


def test_what_is_said_before_the_request_is_no_answer_to_it() -> None:
    talk = begun(Ask(out=OUT, reply="lamp"), "lamp")
    talk.hear(said("lamp", b"before"), 10.0)
    talk.put()
    talk.hear(said("lamp", b"kept", retained=True), 10.0)
    talk.hear(said("lamp", b"after"), 10.1)
    assert talk.end == Heard(payload=b"after")


def test_the_request_itself_is_no_answer_where_it_comes_back() -> None:
    talk = sent(Ask(out=OUT, reply=OUT.topic), OUT.topic)
    talk.hear(said(OUT.topic, OUT.payload), 10.0)
    assert talk.end is None and talk.others == 0
    talk.hear(said(OUT.topic, b"is ON"), 10.1)
    assert talk.end == Heard(payload=b"is ON")


def test_a_device_is_waited_for_until_all_its_topics_have_spoken_or_for_a_moment() -> None:
    ask = Ask(out=OUT, presence=("hub", "here"), **SAID)  # type: ignore[arg-type]
    talk = begun(ask, "hub", "here")
    talk.hear(said("hub"), 10.0)
    talk.look(10.0 + PRESENCE_S - 0.01)
    assert talk.stage == "looking" and talk.due_s == 10.0 + PRESENCE_S
    talk.look(10.0 + PRESENCE_S)
    assert talk.stage == "ready" and talk.due_s is None
    talk = begun(ask, "hub", "here")
    talk.hear(said("hub"), 10.0)
    talk.hear(said("here", b""), 10.0)
    assert talk.stage == "looking", "an empty message says nothing"
    talk.hear(said("here"), 10.0)
    assert talk.stage == "ready"


def test_what_is_kept_is_believed_once_the_device_is_known_to_be_there() -> None:
    ask = Ask(reply="lamp", presence=("here",), **SAID)  # type: ignore[arg-type]
    talk = begun(ask, "here", "lamp")
    talk.hear(said("lamp", b"kept", retained=True), 10.0)
    assert talk.end is None
    talk.hear(said("here"), 10.0)
    assert talk.end == Heard(payload=b"kept")
    talk = begun(ask, "here", "lamp")
    talk.hear(said("lamp", b"kept", retained=True), 10.0)
    talk.hear(said("here", b"offline", retained=True), 10.0)
    assert isinstance(talk.end, Missed) and talk.end.why == "offline"


def test_what_the_broker_refuses_nobody_has_heard() -> None:
    talk = sent(Ask(out=OUT, reply="lamp"), "lamp")
    talk.taken(135)
    assert isinstance(talk.end, Missed)
    assert (talk.end.why, talk.end.sent) == ("denied", False)
    assert "lamp/set" in talk.end.detail and "135" in talk.end.detail


def test_a_connection_that_ends_takes_with_it_only_what_was_sent() -> None:
    waits = begun(Ask(out=OUT, reply="lamp"), "lamp")
    waits.cut_off("closed")
    assert (waits.end, waits.stage, waits.subscribed) == (None, "waiting", False)
    gone = sent(Ask(out=OUT, reply="lamp"), "lamp")
    gone.cut_off("closed")
    assert gone.end == Missed(why="broker_gone", sent=True, detail="closed")


def test_who_gives_up_is_told_what_was_missing() -> None:
    def given_up(talk: Talk, trouble: str = "", *, cancelled: bool = False) -> tuple[str, bool]:
        talk.give_up(cancelled=cancelled, trouble=trouble)
        assert isinstance(talk.end, Missed)
        return talk.end.why, talk.end.sent

    ask = Ask(out=OUT, reply="lamp")
    assert given_up(Talk(ask), "refused") == ("no_broker", False)
    assert given_up(begun(ask)) == ("no_broker", False)
    assert given_up(begun(ask, "lamp")) == ("no_broker", False), "the broker takes nothing"
    assert given_up(sent(ask, "lamp")) == ("unacknowledged", True)
    acknowledged = sent(ask, "lamp")
    acknowledged.taken(None)
    assert given_up(acknowledged) == ("no_reply", True)
    assert given_up(begun(Ask(reply="lamp"), "lamp")) == ("no_reply", False)
    assert given_up(sent(ask, "lamp"), cancelled=True) == ("cancelled", True)
    assert given_up(begun(ask, "lamp"), cancelled=True) == ("cancelled", False)


def test_the_first_end_stands() -> None:
    talk = sent(Ask(out=OUT, reply="lamp"), "lamp")
    talk.hear(said("lamp", b"one"), 10.0)
    talk.hear(said("lamp", b"two"), 10.0)
    talk.give_up(cancelled=True, trouble="")
    talk.cut_off("closed")
    assert talk.end == Heard(payload=b"one")
