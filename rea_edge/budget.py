"""What a run may spend: the arithmetic of limits, reservation and settling. Pure; knows no run and no clock."""

from msgspec import structs

from rea_edge.records import Asked, LimitName, Limits, Usage

BYTES_PER_TOKEN = 3  # an upper estimate for JSON and English; the server's count replaces it when it comes
_CENTS = 6  # decimals of a cost: a sum of tenths must meet its limit exactly
LEAST_ANSWER = 16  # tokens; below this no answer is worth asking for


def tokens_of(size: int) -> int:
    """Estimate the tokens of `size` bytes of text, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def limit_met(limits: Limits, used: Usage) -> LimitName | None:
    """Name the limit that leaves no room for another step, or None.

    All are totals of one run; steps are questions asked, seconds are time inside effects. Tried in the order
    steps, tokens, seconds, so that the answer always names the same one.
    """
    if used.steps >= limits.steps:
        return "steps"
    if used.tokens >= limits.tokens:
        return "tokens"
    if used.seconds >= limits.task_s:
        return "seconds"
    return None


def answer_cap(limits: Limits, used: Usage, prompt_tokens: int, context_tokens: int, answer_tokens: int) -> int:
    """The most tokens the next answer may have; under `LEAST_ANSWER` the question must not be asked.

    The least of: the cap of one answer, what the run has left after this prompt, what the context holds after it.
    """
    return min(answer_tokens, limits.tokens - used.tokens - prompt_tokens, context_tokens - prompt_tokens)


def within(asked: Asked, tokens: int) -> Asked | None:
    """The question, its answer capped so that no more than `tokens` are reserved; None where it must not be asked."""
    over = max(0, asked.reserved - tokens)
    if asked.cap - over < LEAST_ANSWER:
        return None
    return structs.replace(asked, cap=asked.cap - over, reserved=asked.reserved - over)


def reserve(used: Usage, tokens: int) -> Usage:
    """Charge a question before it is asked: one step and the most tokens it may cost."""
    return structs.replace(used, steps=used.steps + 1, tokens=used.tokens + tokens)


def write_off(used: Usage, reserved: int, *, charged: bool = True) -> Usage:
    """End a question that got no answer: its reservation stands as an estimate of what it cost.

    Not `charged`: it was refused before it could cost anything, and its step and reservation are given back.
    """
    if not charged:
        used = structs.replace(used, steps=used.steps - 1, tokens=used.tokens - reserved)
        reserved = 0
    return settle(used, reserved, reserved, estimated=reserved > 0)


def settle(used: Usage, reserved: int, tokens: int, *, estimated: bool) -> Usage:
    """Replace a reservation by the true cost. A server that counts more than was reserved is believed."""
    return structs.replace(used, tokens=used.tokens - reserved + tokens, estimated=used.estimated or estimated)


def spend_seconds(used: Usage, seconds: float) -> Usage:
    """Add the time of one effect."""
    return structs.replace(used, seconds=round(used.seconds + seconds, 3))


def pay(used: Usage, cost: float) -> Usage:
    """Charge a call before it is started. Whatever becomes of it, this stands."""
    return structs.replace(used, cost=round(used.cost + cost, _CENTS))


def cost_left(limits: Limits, used: Usage) -> float | None:
    """What calls may still cost; None where there is no limit."""
    return max(0.0, round(limits.cost - used.cost, _CENTS)) if limits.cost else None


def clamp(asked: dict[str, int | float], configured: Limits) -> Limits:
    """The configured limits, lowered (never raised) by those a request names. Keys are fields of `Limits`."""

    def whole(key: str, value: int) -> int:
        return max(1, min(int(asked.get(key, value)), value))

    def seconds(key: str, value: float) -> float:
        return max(0.1, min(float(asked.get(key, value)), value))

    return Limits(
        steps=whole("steps", configured.steps),
        tokens=whole("tokens", configured.tokens),
        answer_tokens=whole("answer_tokens", configured.answer_tokens),
        tool_s=seconds("tool_s", configured.tool_s),
        task_s=seconds("task_s", configured.task_s),
        cost=min(wanted, configured.cost or wanted) if (wanted := asked.get("cost")) else configured.cost,
    )
