"""The daemon's configuration, as a person writes it and as systemd gives it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from rea_edge.allowance import Allowance
from rea_edge.canonical import canonical
from rea_edge.config import (
    DEFAULT_FILE,
    Memory,
    Secret,
    Settings,
    TaskType,
    config_hash,
    default_id,
    load,
    public,
    tool_files,
)
from rea_edge.errors import ConfigInvalid
from rea_edge.fairness import Pace
from rea_edge.records import Criterion, Hours, Limits, Rate, Rule
from rea_edge.topics import is_name

ROOT = Path(__file__).resolve().parents[2]
WHOLE = """
[node]
id = "boiler-1"
state_dir = "state"
tools = ["board", "mine", "one.py", "/opt/tools"]
[broker]
url = "mqtts://broker.example:8883"
root = "rea/v1"
username = "boiler-1"
password_file = "secret"
ca_file = "ca.pem"
keepalive_s = 20
reconnect_min_s = 0.5
session_expiry_s = 3600
protocol = "5"
[[endpoint]]
name = "local"
url = "http://127.0.0.1:8080/v1"
model = "any"
api_key_file = "key"
connect_s = 2
context_tokens = 2048
temperature = 0.2
protocol = "command"
[limits]
steps = 6
tool_s = 5
day_tokens = 100000
queue = 20
queue_s = 600
[queue]
rate = "30/minute"
burst = 5
[memory]
soft_mib = 50
[store]
keep_days = 7
[access]
identity = "none"
plain_text = "act"
[task.default]
mode = "query"
[task.check]
tools = ["read_sensor", "set_pump"]
mode = "act"
min_observations = 2
protocol = "command"
prompt = "mine.txt"
commands = 2
limits = {steps = 3, task_s = 60}
[gate.set_pump]
rate = "6/minute"
dwell_s = 10.0
ranges = {percent = [0, 80]}
values = {side = ["left", 2]}
hours = "07:00-22:00"
requires = ["read_sensor"]
only_if = [{tool = "read_sensor", path = "value", op = "<", value = 60}]
[log]
level = "debug"
"""
BROKER = "[access]\nidentity = 'broker'\n"


def environ(tmp_path: Path, **more: str) -> Mapping[str, str]:
    return {"HOME": str(tmp_path / "home"), **more}


def read(tmp_path: Path, text: str, **more: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load(file, environ(tmp_path, **more))


def refusal(tmp_path: Path, text: str, **more: str) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        read(tmp_path, text, **more)
    return str(caught.value)


@pytest.fixture
def whole(tmp_path: Path) -> Settings:
    for name, text in {"secret": "hunter2\n", "key": "sk-1", "ca.pem": "x", "mine.txt": "x"}.items():
        (tmp_path / name).write_text(text)
    return read(tmp_path, WHOLE)


def test_every_setting_of_the_file_arrives(whole: Settings, tmp_path: Path) -> None:
    assert whole.node.id == "boiler-1"
    assert whole.broker.keepalive_s == 20
    assert whole.broker.password is not None
    assert whole.broker.password.reveal() == "hunter2"
    assert whole.endpoints[0].api_key is not None
    assert whole.endpoints[0].api_key.reveal() == "sk-1"
    assert whole.limits == Limits(steps=6, tool_s=5.0)
    assert (whole.paces.run, whole.paces.again) == (Pace(per_s=0.5, burst=5), Pace(per_s=0.5, burst=5))
    assert whole.allowance == Allowance(day_tokens=100_000)
    assert (whole.queue.size, whole.queue.longest_s) == (20, 600)
    assert whole.memory == Memory(soft_mib=50)
    assert (whole.store.max_mib, whole.store.keep_days, whole.store.keep_runs) == (16, 7, 2000)
    assert whole.access.plain_text == "act"
    assert whole.log.level == "debug"
    assert whole.gates["set_pump"] == Rule(
        ranges={"percent": (0, 80)},
        values={"side": ("left", 2)},
        rate=Rate(times=6, seconds=60.0),
        dwell_s=10.0,
        hours=Hours(first=420, last=1320),
        requires=("read_sensor",),
        only_if=(Criterion(tool="read_sensor", args={}, path="value", op="<", value=60),),
    )
    check = whole.task_type("check")
    assert check is not None
    assert check.prompt == str(tmp_path / "mine.txt")
    assert whole.limits_of(check) == Limits(steps=3, tool_s=5.0, task_s=60.0)
    assert whole.task_type("other") is None


def test_an_empty_file_is_a_tool_node_with_the_documented_defaults(tmp_path: Path) -> None:
    found = read(tmp_path, "")
    assert found.endpoints == ()
    assert found.broker.url == "mqtt://127.0.0.1:1883"
    assert found.limits == Limits(steps=8, tokens=20_000, answer_tokens=1_024, tool_s=10.0, task_s=300.0)
    assert (found.memory.soft_mib, found.memory.hard_mib, found.memory.tool_mib) == (60, 85, 48)
    assert found.task_type("default") == TaskType()
    assert found.node.state_dir == tmp_path / "home/.local/state/rea-edge"


def test_relative_paths_start_at_the_file_that_names_them(whole: Settings, tmp_path: Path) -> None:
    assert whole.node.state_dir == tmp_path / "state"
    assert whole.broker.ca_file == tmp_path / "ca.pem"
    assert whole.node.tools == ("board", "mine", str(tmp_path / "one.py"), "/opt/tools")


def test_a_file_in_conf_d_wins_and_has_paths_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/10.toml").write_text('[node]\nstate_dir = "a"\n[limits]\nsteps = 2\n')
    (tmp_path / "conf.d/20.toml").write_text('[node]\nid = "late"\ntools = ["x.py"]\n[limits]\nsteps = 3\n')
    (tmp_path / "conf.d/30.toml.off").write_text("not read")
    found = read(tmp_path, '[node]\nid = "early"\ntools = ["board", "y.py"]\n[limits]\nsteps = 1\ntokens = 5000\n')
    assert (found.node.id, found.limits.steps, found.limits.tokens) == ("late", 3, 5000)
    assert found.node.state_dir == tmp_path / "conf.d/a"
    assert found.node.tools == (str(tmp_path / "conf.d/x.py"),)
    assert [file.name for file in found.files] == ["config.toml", "10.toml", "20.toml"]


def test_files_in_conf_d_are_laid_over_each_other_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    for number in (17, 12, 19, 11, 15, 14, 18, 13, 16):
        (tmp_path / f"conf.d/{number}.toml").write_text(f"[limits]\nsteps = {number}\n")
    assert [file.stem for file in read(tmp_path, "").files[1:]] == [str(number) for number in range(11, 20)]
    assert read(tmp_path, "").limits.steps == 19


def test_two_halves_of_one_rule_may_stand_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/login.toml").write_text('[broker]\npassword_file = "p"\n')
    (tmp_path / "conf.d/p").write_text("x")
    assert read(tmp_path, '[broker]\nusername = "n"\n').broker.password is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[nod]\nid = 1", "nod: unknown key"),
        (
            "[broker]\nqos = 2",
            "broker.qos: unknown key; there are url, insecure, root, username, password_file, ca_file",
        ),
        (
            "[access]\nkay = 1",
            "access.kay: unknown key; there are identity, keys, plain_text, operators, approvers, senders, callers",
        ),
        ("[memory]\nsoft = 2", "memory.soft: unknown key; there are soft_mib, hard_mib, tool_mib"),
        (
            "[task.x.limits]\nlives = 9",
            "task.x.limits.lives: unknown key; there are steps, tokens, answer_tokens, tool_s",
        ),
        (
            "[gate.set_pump]\nranges = {percent = 80}",
            "gate.set_pump.ranges.percent: expected [least, most], such as [0, 80]",
        ),
        ("[task.x]\ntool = []", "task.x.tool: unknown key"),
        ("[task.x.limits]\nqueue = 1", "task.x.limits.queue: unknown key"),
        ("[limits]\nsteps = 'x'", "limits.steps: expected int, got str"),
        ("[limits]\nsteps = 0", "limits.steps: expected int >= 1, got 0"),
        ("[limits]\nsteps = true", "limits.steps: expected int, got bool"),
        ("[limits]\ntool_s = nan", "limits.tool_s: expected float >= 0.1, got nan"),
        ("[limits]\ntask_s = 1e9", "limits.task_s: expected float <= 86400.0, got 1000000000.0"),
        ("[limits]\nqueue = 0", "limits.queue: expected int >= 1, got 0"),
        ("[limits]\nanswer_tokens = 30000", "limits.answer_tokens: expected at most tokens, 20000, got 30000"),
        ("log = 3", "log: expected a table, got int"),
        ("[log]\nlevel = 'loud'", "log.level: expected one of debug, info, warning, error, got 'loud'"),
        ("[broker]\nprotocol = '4'", "broker.protocol: expected one of auto, 5, 3.1.1, got '4'"),
        ("[access]\nplain_text = 'x'", "access.plain_text: expected one of act, query, got 'x'"),
        ("[task.x]\nmode = 'x'", "task.x.mode: expected one of act, query, got 'x'"),
        ("[task.x]\nprotocol = 'auto'", "task.x.protocol: expected one of native, json, react, command, got 'auto'"),
        ("[[endpoint]]\nurl = 'http://a/v1'\nprotocol = 1", "endpoint[0].protocol: expected str, got int"),
        ("[[endpoint]]\nurl = 'http://a/v1'\nconnect_s = 0", "endpoint[0].connect_s: expected float >= 0.1, got 0"),
        ("[[endpoint]]\nname = 'a'", "endpoint[0].url: missing"),
        ("[[endpoint]]\nurl = 'ftp://a'", "endpoint[0].url: expected a URL of http, https, got 'ftp://a'"),
        ("[endpoint]\nurl = 'http://a'", "endpoint: expected a list, got a table"),
        ("[store]\nmax_mib = 4", "store.max_mib"),
        ("[memory]\nsoft_mib = 85", "memory.soft_mib: expected less than hard_mib, 85, got 85"),
        ("[node]\nid = 'a b'", "node.id: expected 1 to 36 of A-Z a-z 0-9 _ - and no _ in front, got 'a b'"),
        ("[node]\nid = '_all'", "node.id: expected 1 to 36"),
        ("[node]\ntools = [1]", "node.tools[0]: expected str, got int"),
        ("[node]\nstate_dir = 1", "node.state_dir: expected a path, got 1"),
        ("[broker]\nroot = 'a/+'", "broker.root: expected one to four names"),
        ("[broker]\nurl = 'tcp://a'", "broker.url: expected a URL of mqtt, mqtts, ws, wss, unix, got 'tcp://a'"),
        ("[broker]\nurl = 'mqtt://:1883'", "broker.url: expected SCHEME://HOST:PORT"),
        ("[broker]\nurl = 'unix://run/x'", "broker.url: expected SCHEME://HOST:PORT or unix:///PATH"),
        ("[broker]\nurl = 'mqtt://127.0.0.1:99999'", "broker.url: not a URL"),
        ("[broker]\nurl = 'mqtt://10.0.0.1'", "broker.url: mqtt beyond loopback can be read on the way"),
        ("[broker]\nurl = 'mqtt://127.evil.example'", "broker.url: mqtt beyond loopback"),
        ("[broker]\npassword_file = 'x'", "broker.password_file: needs a username"),
        ("[broker]\nusername='n'\npassword_file = 'none'", "broker.password_file: "),
        ("[broker]\nurl='mqtts://a'\ncert_file = 'x'", "broker.cert_file: cert_file and key_file go together"),
        ("[broker]\nurl='mqtts://a'\nca_file = 'none'", "broker.ca_file: no such file: "),
        ("[broker]\nca_file = 'none'", "broker.url: ca_file, cert_file and key_file need mqtts or wss, got mqtt"),
        ("[broker]\nusername = 'a b'", "node.id: missing, and the broker username 'a b' cannot name a node"),
        ("[task.'a b']", "task.a b: expected a name"),
        ("[task.x]\ntools = ['Set Pump']", "task.x.tools[0]: expected the name of a tool, got 'Set Pump'"),
        ("[task.x]\nlimits = {steps = 9}", "task.x.limits.steps: expected at most that of [limits], 8, got 9"),
        ("[task.x]\nlimits = {steps = 0}", "task.x.limits.steps: expected int >= 1, got 0"),
        ("[task.x]\nprotocol = 'json'\ncommands = 2", "task.x.commands: only for protocol command, got json"),
        ("[task.x]\nprompt = 'none.txt'", "task.x.prompt: no such file: "),
        (
            "[task.x]\nprompt = 'klingon'",
            "task.x.prompt: expected a file or one of command, json, native, react, zh, got",
        ),
        ("[gate.set_pump]\nconfirm = 'yes'", "gate.set_pump.confirm: expected one of never, task, always, got 'yes'"),
        ("[gate.set_pump]\napprovers = ['a']", 'gate.set_pump.approvers: needs [access] identity = "broker"'),
        (f"{BROKER}[gate.set_pump]\napprovers = ['_a']", "gate.set_pump.approvers[0]: expected 1 to 36 of"),
        (f"{BROKER}[gate.set_pump]\napprovers = ['']", "gate.set_pump.approvers[0]: expected 1 to 36 of"),
        ("[gate.set_pump]\napprove_s = 0", "gate.set_pump.approve_s: expected float >= 1.0, got 0"),
        ("[gate.'Set Pump']\nrate = '6/minute'", "gate.Set Pump: expected the name of a tool"),
        ("[gate.set_pump]\nrate = '6 a day'", "gate.set_pump.rate: expected a rate such as 6/minute"),
        ("[gate.set_pump]\nhours = 'noon'", "gate.set_pump.hours: expected hours such as 07:00-22:00, got 'noon'"),
        ("[gate.set_pump]\nranges = {percent = [80, 0]}", "gate.set_pump.ranges.percent: expected [least, most]"),
        ("[gate.set_pump]\nranges = {percent = 80}", "gate.set_pump.ranges"),
        ("[gate.set_pump]\nvalues = {side = []}", "gate.set_pump.values"),
        ("[gate.set_pump]\nvalues = {side = 'left'}", "gate.set_pump.values"),
        ("[gate.set_pump]\nvalues = {side = [[1]]}", "gate.set_pump.values"),
        ("[gate.set_pump]\nrequires = ['A b']", "gate.set_pump.requires[0]: expected the name of a tool"),
        (
            "[gate.set_pump]\nonly_if = [{tool = 'a'}]",
            "gate.set_pump.only_if[0]: expected either equals, or op and value",
        ),
        ("[gate.set_pump]\nspeed = 1", "gate.set_pump.speed: unknown key"),
        ("[access]\nsenders = ['a']", 'access.senders: needs identity = "broker"'),
        ("[access]\noperators = ['a']", 'access.operators: needs identity = "broker"'),
        ("[access]\napprovers = ['a']", 'access.approvers: needs identity = "broker"'),
        (f"{BROKER}approvers = ['_a']", "access.approvers[0]: expected 1 to 36 of"),
        ("[task.x]\nuntrusted = 'yes'", "task.x.untrusted: expected one of ask, allow, got 'yes'"),
        ("[access]\ncallers = {a = ['b']}", 'access.callers: needs identity = "broker"'),
        ("[access]\nidentity = 'login'", "access.identity: expected one of none, broker, keys, got 'login'"),
        (f"{BROKER}operators = ['_a']", "access.operators[0]: expected 1 to 36 of"),
        (f"{BROKER}senders = ['a b']", "access.senders[0]: expected str matching"),
        (f"{BROKER}callers = {{set-pump = ['b']}}", "access.callers.set-pump: expected the name of a tool"),
        (f"{BROKER}callers = {{a = ['b', '_c']}}", "access.callers.a[1]: expected 1 to 36 of"),
        ("[queue]\nrate = '2'", "queue.rate: expected a rate such as 6/minute"),
        ("[queue]\nburst = 0", "queue.burst: expected int >= 1, got 0"),
        ("[queue]\nsize = 5", "queue.size: unknown key"),
        ("[limits]\nday_tokens = -1", "limits.day_tokens: expected int >= 0, got -1"),
        ("[task.x.limits]\nmonth_tokens = 1", "task.x.limits.month_tokens: unknown key"),
        ("[task.x]\ndone_when = [{tool = 'A b', equals = 1}]", "task.x.done_when[0].tool: expected the name of a tool"),
        ("[task.x]\ndone_when = [{tool = 'a', path = '/x', equals = 1}]", "task.x.done_when[0].path: expected a path"),
        ("[task.x]\ndone_when = [{tool = 'a'}]", "task.x.done_when[0]: expected either equals, or op and value"),
        ("[task.x]\ndone_when = [{tool = 'a', op = '>'}]", "task.x.done_when[0]: expected either equals, or op"),
        ("[task.x]\ndone_when = [{tool = 'a', op = '~', value = 1}]", "task.x.done_when[0].op: expected one of"),
        ("[task.x]\ndone_when = [{tool = 'a', is = 1}]", "task.x.done_when[0].is: unknown key"),
        (
            "[[endpoint]]\nurl='http://a'\n[[endpoint]]\nurl='http://b'",
            "endpoint[1].name: there is an endpoint 'local'",
        ),
        ("[[endpoint]]\nurl='http://a'\n" * 9, "endpoint[8]: expected at most 8 endpoints"),
        ("[peer.pump]", "peer.pump.tools: missing"),
        ("[peer.pump]\ntools = []", "peer.pump.tools: expected a list of length >= 1"),
        (
            "[peer.pump]\ntools = ['*']",
            "peer.pump.tools[0]: expected the name of a tool, got '*'; there is no wildcard",
        ),
        ("[peer.pump]\ntools = ['a', 'a']", "peer.pump.tools[1]: 'a' is named twice"),
        (f"[peer.pump]\ntools = ['{'a' * 43}']", "peer.pump.tools[0]: 'pump__aaaa"),
        ("[peer.boiler-1]\ntools = ['a']", "peer.boiler-1: it stands in front of its tools' names: expected words of"),
        ("[peer.a__b]\ntools = ['a']", "peer.a__b: it stands in front"),
        ("[peer.a_]\ntools = ['a']", "peer.a_: it stands in front"),
        ("[peer.Pump]\ntools = ['a']", "peer.Pump: it stands in front"),
        ("[peer.pump]\nnode = '_all'\ntools = ['a']", "peer.pump.node: expected 1 to 36 of"),
        ("[peer.pump]\nroot = 'a/#'\ntools = ['a']", "peer.pump.root: expected one to four names"),
        ("[peer.pump]\nsigning_key = 'a'\ntools = ['a']", "peer.pump.signing_key: never in the file itself"),
        ("[peer.pump]\nsigning_key_file = 'no'\ntools = ['a']", "peer.pump.signing_key_file: "),
        ("[peer.pump]\nwho = 'a'\ntools = ['a']", "peer.pump.who: unknown key"),
        ("[peer.pump]\ntools = ['a']\neffect = {b = 'read'}", "peer.pump.effect.b: no tool named here; there are a"),
        ("[peer.pump]\ntools = ['a']\neffect = {a = 'none'}", "peer.pump.effect"),
        ("[peer.pump]\ntools = ['a']\ntimeout_s = {a = 0}", "peer.pump.timeout_s"),
        ("[node]\nid = 'n'\n[peer.pump]\nnode = 'n'\ntools = ['a']", "peer.pump.node: 'n' is this node itself"),
        ("".join(f"[peer.p{n}]\ntools = ['a']\n" for n in range(17)), "peer: expected at most 16 peers, got 17"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_path(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_a_refusal_names_the_file_the_setting_stands_in(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/10.toml").write_text("[limits]\nsteps = 0\n")
    assert refusal(tmp_path, "").endswith(f"(in {tmp_path}/conf.d/10.toml)")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"[node]\nid = 'a'\nb = \xff\n", "not UTF-8 (at line 3)", id="bytes that are no UTF-8"),
        pytest.param(b"[node]\n\nid = \n", "(at line 3, column 6)", id="no TOML"),
        pytest.param(b"[node]\nid = 'a'\nid = 'b'\n", "(at line 3", id="a key given twice"),
        pytest.param(b"#" * 65_537, "more than 65536 bytes", id="one byte too long"),
        pytest.param(b"a = " + b"[" * 30_000, "nested too deeply", id="deep arrays"),
        pytest.param(b"a" + b".a" * 2_000 + b" = 1", "unknown key", id="deep tables"),
        pytest.param(b"[task.x]\ntools.a" + b".a" * 2_000 + b" = 1", "expected a list", id="deep tables in a task"),
        pytest.param(b"a = " + b"9" * 10_000, "config.toml: ", id="a number of 10000 digits"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_line(tmp_path: Path, raw: bytes, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(raw)
    with pytest.raises(ConfigInvalid) as caught:
        load(file, environ(tmp_path))
    assert str(file) in str(caught.value)
    assert said in str(caught.value)


def test_a_file_of_exactly_the_cap_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"#" * 65_536)
    assert load(tmp_path / "config.toml", environ(tmp_path)).endpoints == ()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"none.toml: cannot be read: No such file"):
        load(tmp_path / "none.toml", environ(tmp_path))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('[broker]\nusername = "n"\npassword = "hunter2"', "hunter2"),
        ('[[endpoint]]\nurl = "http://a"\napi_key = "sk-1"', "sk-1"),
        ('[broker]\nurl = "mqtt://n:hunter2@127.0.0.1"', "hunter2"),
        ('[[endpoint]]\nurl = "https://sk-1@a/v1"', "sk-1"),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path, text: str, secret: str) -> None:
    said = refusal(tmp_path, text)
    assert secret not in said
    assert "file" in said


def test_no_view_of_the_settings_shows_a_secret(whole: Settings) -> None:
    views = [repr(whole), str(whole), canonical(public(whole)).decode(), str(Secret("hunter2")), config_hash(whole)]
    assert not [view for view in views if "hunter2" in view or "sk-1" in view]


def test_what_anyone_may_query_shows_no_address_path_or_login(whole: Settings, tmp_path: Path) -> None:
    seen = canonical({**public(whole), "config_hash": ""}).decode()  # its hex may hold any four digits
    assert not [word for word in (str(tmp_path), "broker.example", "8080", "/opt") if word in seen]
    assert '"steps":3' in seen


def test_systemd_credentials_serve_where_no_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    for name in ("broker_password", "broker_ca", "broker_cert", "broker_key", "api_key_far"):
        (folder / name).write_text(f"{name}\n")
    text = '[broker]\nurl="mqtts://b"\nusername="n"\n[[endpoint]]\nname="far"\nurl="https://far/v1"\n'
    found = read(tmp_path, text, CREDENTIALS_DIRECTORY=str(folder))
    assert found.broker.password is not None
    assert found.broker.password.reveal() == "broker_password"
    assert (found.broker.ca_file, found.broker.key_file) == (folder / "broker_ca", folder / "broker_key")
    assert found.endpoints[0].api_key is not None
    assert found.endpoints[0].api_key.reveal() == "api_key_far"


def test_a_named_file_wins_over_a_credential(tmp_path: Path) -> None:
    (tmp_path / "broker_password").write_text("credential")
    (tmp_path / "p").write_text("named")
    text = '[broker]\nusername="n"\npassword_file="p"\n'
    password = read(tmp_path, text, CREDENTIALS_DIRECTORY=str(tmp_path)).broker.password
    assert password is not None
    assert password.reveal() == "named"


@pytest.mark.parametrize("raw", [b"", b"\n", b"one\ntwo\n", b"\xff", b"x" * 9000])
def test_a_secret_file_that_holds_no_single_line_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "p").write_bytes(raw)
    assert refusal(tmp_path, '[broker]\nusername="n"\npassword_file="p"\n').startswith("broker.password_file: ")


@pytest.mark.parametrize(("raw", "secret"), [(b" a b ", " a b "), (b"a\r\n", "a"), ("\ufeffö".encode(), "ö")])
def test_a_secret_loses_its_line_end_and_nothing_else(tmp_path: Path, raw: bytes, secret: str) -> None:
    (tmp_path / "p").write_bytes(raw)
    password = read(tmp_path, '[broker]\nusername="n"\npassword_file="p"\n').broker.password
    assert password is not None
    assert password.reveal() == secret


def test_the_id_is_the_broker_login_else_made_of_host_and_machine(tmp_path: Path) -> None:
    assert read(tmp_path, '[broker]\nusername = "boiler-7"\n').node.id == "boiler-7"
    made = read(tmp_path, "").node.id
    assert made == default_id(None)
    assert is_name(made)
    assert made[-7] == "-"
    assert made.startswith(os.uname().nodename[:1])


def test_systemd_gives_the_state_folder(tmp_path: Path) -> None:
    assert read(tmp_path, "", STATE_DIRECTORY="/var/lib/rea-edge:/var/lib/x").node.state_dir == Path(
        "/var/lib/rea-edge"
    )
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(ConfigInvalid, match=r"node\.state_dir: missing"):
        load(tmp_path / "config.toml", {})


def test_settings_do_not_change(whole: Settings) -> None:
    with pytest.raises(AttributeError):
        whole.limits.steps = 3  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param("[limits]\nsteps = 8\n", True, id="a default spelled out"),
        pytest.param("[limits]\ntool_s = 10\n", True, id="a number spelled otherwise"),
        pytest.param("[limits]\nsteps = 7\n", False, id="another limit"),
        pytest.param('[task.x]\nmode = "act"\n', False, id="a task type"),
    ],
)
def test_the_hash_tells_settings_apart_not_spellings(tmp_path: Path, text: str, same: bool) -> None:
    plain = config_hash(read(tmp_path, ""))
    assert (config_hash(read(tmp_path, text)) == plain) is same


def test_the_hash_knows_whether_there_is_a_secret_but_not_which(whole: Settings) -> None:
    def with_password(secret: Secret | None) -> str:
        broker = msgspec.structs.replace(whole.broker, password=secret)
        return config_hash(msgspec.structs.replace(whole, broker=broker))

    assert with_password(Secret("a")) == with_password(Secret("b")) != with_password(None)


def test_tools_are_found_shipped_in_folders_and_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("b.py", "a.toml", "_part.py", ".hidden.py", "notes.txt"):
        (folder / name).write_text("")
    found = tool_files(read(tmp_path, '[node]\ntools = ["./mine", "mine/a.toml", "none.py", "./none"]\n'))
    assert found == (folder / "a.toml", folder / "b.py", tmp_path / "none.py", tmp_path / "none")


def test_a_bare_name_that_is_not_shipped_is_refused(tmp_path: Path) -> None:
    settings = read(tmp_path, '[node]\ntools = ["nonesuch"]\n')
    with pytest.raises(ConfigInvalid, match=r"node.tools\[0\]: 'nonesuch' is not shipped"):
        tool_files(settings)


def test_a_checkout_finds_its_shipped_tools(tmp_path: Path) -> None:
    assert tool_files(read(tmp_path, "")) == (ROOT / "tools/board.py",)


def test_an_installed_package_finds_its_shipped_tools(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages/rea_edge"
    shutil.copytree(ROOT / "rea_edge", installed, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", installed / "_data/tools", dirs_exist_ok=True)
    (tmp_path / "config.toml").write_text("")
    code = f"""
from pathlib import Path
from rea_edge.allowance import Allowance
from rea_edge.config import load, shipped_names, tool_files
print(*tool_files(load(Path({str(tmp_path / "config.toml")!r}), {{"HOME": "/"}})), *shipped_names())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed.parent)},
    )
    board, *names = done.stdout.split()
    assert board == str(installed / "_data/tools/board.py")
    assert {"board", "boiler"} <= set(names)


@pytest.mark.skipif(DEFAULT_FILE.exists(), reason="this machine is a node")
def test_a_default_file_that_is_not_there_says_how_to_name_another() -> None:
    with pytest.raises(
        ConfigInvalid, match=r"config.toml: is not there: write one, or name another with --config FILE"
    ):
        load(DEFAULT_FILE, {})
