"""Topics of ours are built from names, and read strictly: what comes in may be anything."""

import pytest

from rea_edge.topics import Topics

TOPICS = Topics("rea/v1", "n1")


@pytest.mark.parametrize(
    ("topic", "may"),
    [
        pytest.param("rea/v1/n1/out/me/mine", True, id="below the person"),
        pytest.param("rea/v1/n1/out/you/mine", False, id="below another"),
        pytest.param("rea/v1/n1/out/me", False, id="the person alone"),
        pytest.param("rea/v1/n1/out/me/" + "x" * 300, False, id="very long"),
        pytest.param("rea/v1/n1/out/me/+", False, id="a wildcard"),
        pytest.param("rea/v1/n1/out/me/a#", False, id="another wildcard"),
        pytest.param("rea/v1/n1/out/me/a\nb", False, id="a line break"),
        pytest.param("rea/v1/n1/out/me/a\0b", False, id="a zero"),
        pytest.param("rea/v1/n1/out/me/\ufdd0", False, id="a character that is none"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_response_topic_lies_below_the_person_and_is_one_that_any_broker_takes(topic: str, may: bool) -> None:
    assert TOPICS.may_answer_at("me", topic) is may
