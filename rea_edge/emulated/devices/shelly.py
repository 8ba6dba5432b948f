"""A simulated Shelly of the second generation or later with one switch.

After https://shelly-api-docs.shelly.cloud/gen2/General/RPCProtocol and RPCChannels (its MQTT section),
https://shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Mqtt and .../Switch:

    PREFIX/rpc               {"id":1,"src":"me","method":"Switch.Set","params":{"id":0,"on":true}}
                             answered on me/rpc {"id":1,"src":PREFIX,"dst":"me","result":{"was_on":false}}, or with
                             "error":{"code","message"}; without `src` it acts and answers nobody
    PREFIX/command/switch:0  on, off, toggle, status_update (where MQTT control is enabled; `on,4`, for four seconds,
                             is not played here)
    PREFIX/status/switch:0   the whole status of the switch at each change; not retained
    PREFIX/events/rpc        {"method":"NotifyStatus","params":{...}} at each change
    PREFIX/online            true or false, retained; false is the will

QoS 1 throughout. Commands on PREFIX/command/switch:0 have no id, and no answer but the status.
"""

from rea_edge.emulated.devices.appliance import Appliance, Said, objects, packed, switched


class Shelly(Appliance):
    """`prefix` is its topic prefix, by default its id, such as shellyplus1-a8032abe54dc. The switch is off at first."""

    def __init__(self, prefix: str, *, celsius: float = 41.2) -> None:
        self.prefix = prefix
        self.on = False
        self.celsius = celsius
        filters = tuple(f"{prefix}/{one}" for one in ("rpc", "command", "command/switch:0"))
        super().__init__(prefix, filters, Said(f"{prefix}/online", b"false", 1, True), qos=1)

    def births(self) -> list[Said]:
        return [Said(f"{self.prefix}/online", b"true", 1, True), self._status()]

    def answers(self, topic: str, payload: bytes) -> list[Said]:
        match topic.removeprefix(f"{self.prefix}/"):
            case "rpc":
                return self._rpc(objects(payload))
            case "command":
                return [self._status()] if payload == b"status_update" else []
            case _:
                return self._command(payload.decode(errors="replace"))

    def _command(self, said: str) -> list[Said]:
        if said == "status_update":
            return [self._status()]
        on = switched(said, self.on)
        return [] if on is None else self._turn(on)

    def _rpc(self, frame: dict[str, object]) -> list[Said]:
        params = frame.get("params", {})
        asked = params if isinstance(params, dict) else {}
        said: list[Said] = []
        match frame.get("method"):
            case "Switch.Set" | "Switch.GetStatus" | "Switch.Toggle" if asked.get("id") != 0:
                reply: dict[str, object] = failed(-105, f"Argument 'id', value {asked.get('id')!r} not found!")
            case "Switch.Set" if not isinstance(asked.get("on"), bool):
                reply = failed(-103, "Missing required argument 'on'!")
            case "Switch.Set" | "Switch.Toggle":
                reply = {"result": {"was_on": self.on}}
                said = self._turn(bool(asked.get("on", not self.on)))
            case "Switch.GetStatus":
                reply = {"result": self._switch()}
            case "Shelly.GetStatus":
                reply = {"result": {"switch:0": self._switch(), "mqtt": {"connected": True}}}
            case method:
                reply = failed(404, f"No handler for {method}")
        source = frame.get("src")
        if not isinstance(source, str) or not source:
            return said
        answer = {"id": frame.get("id"), "src": self.prefix, "dst": source, **reply}
        return [Said(f"{source}/rpc", packed(answer), 1), *said]

    def _turn(self, on: bool) -> list[Said]:
        if not self.acts(self.prefix, "switch:0", on):
            return [self._status()]
        changed, self.on = self.on != on, on
        event = {"src": self.prefix, "dst": f"{self.prefix}/events", "method": "NotifyStatus"}
        news = {**event, "params": {"switch:0": {"id": 0, "output": on, "source": "MQTT"}}}
        return [Said(f"{self.prefix}/events/rpc", packed(news), 1), self._status()] if changed else []

    def _switch(self) -> dict[str, object]:
        return {"id": 0, "source": "MQTT", "output": self.on, "temperature": {"tC": self.celsius, "tF": 106.2}}

    def _status(self) -> Said:
        return Said(f"{self.prefix}/status/switch:0", packed(self._switch()), 1)


def failed(code: int, message: str) -> dict[str, object]:
    return {"error": {"code": code, "message": message}}
