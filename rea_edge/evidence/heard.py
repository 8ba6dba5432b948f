"""A goal beside what the examples teach: which tools, values and comparisons its words speak for."""

from collections.abc import Sequence

import msgspec

from rea_edge.bounds import Asked, Bounds
from rea_edge.decision.grammar import choices, paths, takes
from rea_edge.evidence.chosen import Chosen, parameters
from rea_edge.evidence.clauses import Clauses, blanked, clauses
from rea_edge.evidence.conditions import Test, compared_texts, cues, guards, test_of
from rea_edge.evidence.naming import is_of_heat, of_act, taught_by, telling_of
from rea_edge.evidence.orders import Orders, Plan
from rea_edge.evidence.values import few_of, only
from rea_edge.evidence.words import ASKING, COMMON, POLITE, PRONOUN, QUESTION, first_word, numbers, plain, words
from rea_edge.records import Args, Call, Calls, Criterion, Tool

LONGEST = 1000  # characters of a goal that orders anything: more is prose, and would take long to hear
_MARKS = " .!?。！？"
LARGEST = 1e15  # a number from which on floats are no longer exact is none that anybody means


class Heard:
    """A goal beside what the examples teach."""

    def __init__(self, goal: str, tools: Sequence[Tool], commands: int) -> None:
        self._text = goal = plain(goal)
        self._reads = [tool for tool in tools if tool.effect == "read"]
        self._acts = [tool for tool in tools if tool.effect != "read"]
        self._taught = taught_by(tools)
        self._lessons = self._taught.lessons
        self._commands = commands
        self._asks = first_word(goal) in QUESTION
        cut = clauses(goal, cues(self._lessons), compared_texts(self._lessons, tools))
        self._conditional = bool(cut.condition.strip())
        self._may_order = len(goal) <= LONGEST and all(abs(number) < LARGEST for number in numbers(goal))
        self._test = test_of(cut, self._lessons, tools) if self._conditional and self._may_order else None
        self._goal = Chosen(goal, self._taught)
        self._about = Chosen(_without(goal, self._test), self._taught)
        self._compared = self._what_is_compared(cut)
        self._orders = Orders(
            cut.order if cut.parted else _without(cut.order, self._test),
            _without(cut.condition, self._test),
            self._about,
            self._acts,
            self._taught,
            self._reading_words() - {word for tool in self._reads for word in _value_words(tool)},
        )

    def narrowed(self) -> tuple[tuple[Tool, ...], Bounds]:
        """The tools that the goal speaks for, cut down to what it says, and the bounds of a line."""
        if (example := self._example()) is not None:
            return self._as_taught(example)
        reads = [some for tool in self._reads if (some := self._read(tool))]
        places = {tool.name: found for tool in reads if self._test and (found := self._paths(tool))}
        # What is compared is one thing in one place, or nothing is.
        certain = len(places) == 1 and all(len(found) == 1 for found in places.values())
        may_order = self._may_order and not self._asks and (certain or not self._conditional)
        plan = self._orders.plan() if may_order else None
        # Part of what is asked must not pass for the whole.
        acts = plan.acts if plan and plan.lines <= self._commands else []
        bounds = Bounds(
            plain=not self._conditional,
            reads=self._asks or self._commands > 1 or not self._is_an_order(),
            tests=((self._test.op, self._test.value),) if self._test and certain else (),
            paths=places if certain else {},
            acts=tuple(Asked(act.tool.name, act.args) for act in acts),
            why="" if acts or self._asks or not self._is_an_order() else self._why_not(plan),
        )
        return (*reads, *_merged([act.tool for act in acts])), bounds

    def _example(self) -> Call | None:
        """The call of the example that says the same, but for its punctuation marks at the end."""
        said = self._text.strip(_MARKS)
        same = [one.act for one in self._lessons if isinstance(one.decision, Calls) and one.say.strip(_MARKS) == said]
        return same[0] if len(same) == 1 else None

    def _as_taught(self, call: Call) -> tuple[tuple[Tool, ...], Bounds]:
        tool = next(tool for tool in (*self._reads, *self._acts) if tool.name == call.name)
        fixed: Args = {key: value for key, value in call.args.items() if isinstance(value, str | int | float)}
        shapes = {
            key: only([fixed[key]]) if key in fixed else shape for key, shape, _ in parameters(tool) if key in call.args
        }
        kept = msgspec.structs.replace(
            tool, parameters={**tool.parameters, "properties": shapes, "required": [*shapes]}
        )
        acts = (Asked(call.name, fixed),) if tool.effect != "read" else ()
        return (kept,), Bounds(plain=True, reads=not acts or self._commands > 1, acts=acts)

    def condition(self) -> Criterion | None:
        """The condition of all acts, where there are some and all is certain."""
        kept, bounds = self.narrowed()
        for tool in kept if bounds.acts else ():
            fixed = _fixed(tool)
            if tool.name in bounds.paths and len(fixed) == len(list(parameters(tool))):
                assert self._test is not None
                path, test = bounds.paths[tool.name][0], self._test
                return Criterion(tool=tool.name, args=fixed, path=path, op=test.op, value=test.value)
        return None

    # --- readings

    def _read(self, tool: Tool) -> Tool | None:
        telling = telling_of(tool, [other for other in self._reads if other is not tool], self._lessons)
        heard = self._compared if self._test else self._goal
        if telling is None:
            # Nothing was taught about it: offered for a question, never compared unless its name is said.
            return tool if not self._test or heard.words & set(tool.name.split("_")) else None
        if not (heard.words & telling or heard.mentions(tool)):
            return None
        cut: Args = {}
        for key, shape, required in parameters(tool):
            values = heard.of(tool, key, shape)
            if self._test and values:
                # Of several things that are named, the last one before the comparison is what is compared.
                values = [max(values, key=heard.last_place)]
            elif values == [] and not self._test:
                values = heard.nearly(choices(shape) or ()) or None
            if values is None:
                cut[key] = shape
            elif values:
                cut[key] = only(values)
            elif required:
                return None
        return msgspec.structs.replace(tool, parameters={**tool.parameters, "properties": cut})

    def _what_is_compared(self, cut: Clauses) -> Chosen:
        """The words before the comparison; the whole goal's where they say only "it"."""
        if self._test is None:
            return self._goal
        said = Chosen(cut.condition[: self._test.at], self._taught)
        unsaid = said.words & PRONOUN and not any(said.mentions(tool) for tool in self._reads)
        return self._about if unsaid else said

    def _paths(self, tool: Tool) -> tuple[str, ...]:
        """Where a result may be compared: as in an example, else in the only place there is."""
        assert self._test is not None
        if self._test.heat and not is_of_heat(tool, self._lessons):
            return ()
        shown = dict.fromkeys(guard.path for _, guard in guards(self._lessons) if guard.read.name == tool.name)
        typed = dict(paths(tool.returns))
        found = shown or (typed if len(typed) == 1 else {})
        return tuple(path for path in found if path not in typed or takes(typed[path], self._test.value))

    def _reading_words(self) -> frozenset[str]:
        told = (lesson.words for tool in self._reads for lesson in of_act(self._lessons, tool))
        return frozenset(word for said in told for word in said) - COMMON - POLITE

    # --- acts

    def _why_not(self, plan: Plan | None) -> str:
        if plan and plan.lines > self._commands:
            may = "one may run" if self._commands == 1 else f"{self._commands} may run"
            return f"the goal asks for {plan.lines} commands, and {may} (commands of the task type)"
        return (
            "the goal's words do not say for certain what is to be done; the tools' examples are what they are held to"
        )

    def _is_an_order(self) -> bool:
        """Whether a reading would pass for having done something: a device is named, or there is a condition and under
        it something that is no question."""
        unknown = self._orders.words - COMMON - POLITE - ASKING - self._reading_words()
        return bool(self._orders.named() or (self._conditional and unknown))


def _without(text: str, test: Test | None) -> str:
    return blanked(text, [(test.at, test.end)]) if test else text


def _value_words(tool: Tool) -> frozenset[str]:
    return frozenset(word for _, some in few_of(tool) for value in some for word in words(str(value)))


def _fixed(tool: Tool) -> Args:
    """The parameters of a tool that have one value."""
    fixed = ((key, choices(shape)) for key, shape, _ in parameters(tool))
    return {key: few[0] for key, few in fixed if few is not None and len(few) == 1}


def _merged(acts: Sequence[Tool]) -> list[Tool]:
    """Each tool once, with every value that one of its acts has."""
    found: dict[str, Tool] = {}
    for tool in acts:
        other = found.setdefault(tool.name, tool)
        shapes = {key: shape for key, shape, _ in parameters(other)}
        for key, shape, _ in parameters(tool):
            few, more = choices(shapes.get(key, shape)), choices(shape)
            shapes[key] = only(list(dict.fromkeys([*few, *more]))) if few is not None and more is not None else shape
        found[tool.name] = msgspec.structs.replace(other, parameters={**other.parameters, "properties": shapes})
    return list(found.values())
