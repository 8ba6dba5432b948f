"""What makes a request count once, and only as its sender's: acknowledging, names, ages, signatures, turns."""

from tests.durability.safeguards.mutation import Mutation

CONTROLS = "tests/durability/test_controls.py"
ACKNOWLEDGED = "tests/durability/test_acknowledged.py"

REQUESTS = (
    Mutation(
        "a cancel that came before its task is forgotten",
        (("mailbox.py", "cancel = early.take(tx, who, request_id, self._clock())", "cancel = None"),),
        (f"{CONTROLS}::test_a_control_at_a_sampled_border_is_as_one_in_some_order",),
    ),
    Mutation(
        "a message is acknowledged before it is committed",
        (
            (
                "mqtt/connection.py",
                "            if not self._ears.accept(incoming) and message.qos:",
                "            client.ack(message.mid, message.qos)\n            client.loop_write()\n"
                "            if not self._ears.accept(incoming) and message.qos:",
            ),
        ),
        (ACKNOWLEDGED,),
    ),
    Mutation(
        "a message that could not be committed is acknowledged",
        (("mailbox.py", "        except StoreBroken:\n            raise\n", "        except StoreBroken:\n            pass\n"),),
        (ACKNOWLEDGED,),
    ),
    Mutation(
        "a task that is sent again is a new one",
        (
            ("store/layout.py", "crc INTEGER NOT NULL, UNIQUE (kind, who, id))", "crc INTEGER NOT NULL)"),
            ("store/writing.py", " ON CONFLICT (kind, who, id) DO NOTHING", ""),
            ("mailbox.py", "known = self._store.run_of(kind, who, request_id)", "known = None"),
        ),
        ("tests/e2e/test_tasks.py",),
    ),
    Mutation(
        "a task is found by its id without its sender",
        (
            (
                "store/reading.py",
                'return self._one_run(db, "WHERE run.kind = ? AND run.who = ? AND run.id = ?", kind, who, id)',
                'return self._one_run(db, "WHERE run.kind = ? AND run.id = ?", kind, id)',
            ),
        ),
        ("tests/store/test_transactions.py",),
    ),
    Mutation(
        "a request for another state is taken",
        (("intake.py", "if request.epoch is not None and request.epoch != epoch:", "if False:"),),
        ("tests/e2e/test_requests.py",),
    ),
    Mutation(
        "a message is taken off the outbox when it is sent",
        (("mqtt/connection.py", "        if qos:\n            self._in_flight.put(", "        if False:\n            self._in_flight.put("),),
        ("tests/mqtt/test_faults.py",),
    ),
    Mutation(
        "each refusal of a flood is told",
        (("answers.py", "if not self._fairness.is_told(bucket, time.monotonic()):", "if False:"),),
        ("tests/e2e/test_flood.py",),
    ),
    Mutation(
        "senders do not take turns",
        (("daemon/queue.py", "key=lambda row: (order.get(row.who, -1), row.row)", "key=lambda row: row.row"),),
        ("tests/daemon/test_queue.py",),
    ),
    Mutation(
        "whoever knows a name is its owner",
        (("signers.py", "if key is None or not is_signed(key, topic, letter.keys):", "if key is None:"),),
        ("tests/daemon/test_signers.py",),
    ),
    Mutation(
        "a signature holds on every topic",
        (("signature.py", '"topic": topic})', '"topic": ""})'),),
        ("tests/test_signature.py",),
    ),
    Mutation(
        "the broker says how old a signed request is",
        (("mailbox.py", "            self._signers.check_age(who, request, what, self._clock())\n            return\n", "            pass\n"),),
        ("tests/e2e/test_signed.py",),
    ),
    Mutation(
        "a signed request may be as old as it likes",
        (("signers.py", "intake.TTL_MS[what]) / 1000, MOST_S)", "intake.TTL_MS[what]) / 1000, 1e12)"),),
        ("tests/daemon/test_signers.py",),
    ),
    Mutation(
        "when a signed request was sent is not written down with it",
        (("mailbox.py", "                self._signers.note(tx, who, sent_at)\n", ""),),
        ("tests/e2e/test_signed.py",),
    ),
    Mutation(
        "a signed control that is put there again acts again",
        (("signers.py", "if any(one.sig == sig for one in fresh):", "if False:"),),
        ("tests/daemon/test_signers.py", "tests/e2e/test_signed.py"),
    ),
)  # fmt: skip
