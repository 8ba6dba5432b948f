"""What is said to a device of somebody else over MQTT, and read from it, as values. Pure; knows no connection.

Files import in this order: places (filling `{name}` in), topic (which topics may be used), toggle (what does something
else each time), message (a call as the message it is), reply (what a device said).
"""
