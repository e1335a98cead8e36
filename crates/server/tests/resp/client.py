"""Asks two servers what redis-py can ask, and says `fine` if all of it is as it should be."""

import sys
import threading

import redis

open_port, locked_port, password, protocol, key = sys.argv[1:]
protocol = int(protocol)


def client(port, **more):
    return redis.Redis(host="127.0.0.1", port=int(port), protocol=protocol, **more)


def throttle(on, name, burst=15, count=30, period=60, *quantity):
    return on.execute_command("CL.THROTTLE", name, burst, count, period, *quantity)


plain = client(open_port)
assert plain.ping() is True
assert plain.echo("hello") == b"hello"
assert throttle(plain, key) == [0, 16, 15, -1, 2]
assert plain.client_setname("me") and plain.client_getname() in (b"me", "me")
assert isinstance(plain.client_id(), int)
assert plain.info()["tidegate_version"]
assert plain.config_get("save") == {b"save": b""} or plain.config_get("save") == {"save": ""}
assert plain.command_count() == 27
assert "cl.throttle" in {str(name).strip("b'") for name in plain.command_list()}
try:
    throttle(plain, key, "x")
    raise SystemExit("an error was expected")
except redis.ResponseError as error:
    assert "Couldn't parse as integer: x" in str(error), error

named = client(open_port, decode_responses=True, client_name="named")
checked = named.execute_command("TG.CHECK", "api", "user", key)
if protocol == 3:
    assert checked["allowed"] is True and checked["limit"] == "per-user", checked
    assert checked["remaining"] == 4 and checked["decided_by"] == "store", checked
else:
    assert checked[:4] == [1, "per-user", "5/min", 4], checked
assert named.client_getname() == "named"

pipe = plain.pipeline(transaction=False)
for _ in range(100):
    pipe.execute_command("CL.THROTTLE", key + "-pipe", 49, 1, 3600)
limited = [reply[0] for reply in pipe.execute()]
assert limited == [0] * 50 + [1] * 50, limited

pipe = plain.pipeline()
for _ in range(5):
    pipe.execute_command("CL.THROTTLE", key + "-multi", 2, 1, 3600)
assert [reply[0] for reply in pipe.execute()] == [0, 0, 0, 1, 1]
pipe.execute_command("CL.THROTTLE", key + "-abort", 2, 1, 3600)
pipe.execute_command("CL.THROTTLE", key + "-abort", "x", 1, 3600)
try:
    pipe.execute()
    raise SystemExit("a transaction with an invalid command ran")
except redis.ResponseError as error:
    assert "Couldn't parse as integer: x" in str(error), error
assert throttle(plain, key + "-abort", 2, 1, 3600, 0)[2] == 3, "the invalid transaction took"

gone = key + "-gone"
assert (plain.exists(gone), plain.ttl(gone), plain.delete(gone)) == (0, -2, 0)
throttle(plain, gone, 0, 1, 3600)
assert plain.exists(gone) == 1 and 3590 <= plain.ttl(gone) <= 3600, plain.ttl(gone)
assert 3_590_000 <= plain.pttl(gone) <= 3_600_000, plain.pttl(gone)
assert plain.type(gone) in (b"string", "string")
assert plain.delete(gone) == 1 and throttle(plain, gone, 0, 1, 3600)[0] == 0

allowed = []


def hammer():
    for _ in range(25):
        allowed.append(throttle(plain, key + "-pool", 99, 1, 3600)[0] == 0)


threads = [threading.Thread(target=hammer) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert allowed.count(True) == 100 and len(allowed) == 200, allowed.count(True)

assert client(locked_port, password=password).ping() is True
assert client(locked_port, username="default", password=password).ping() is True
try:
    client(locked_port, password="wrong").ping()
    raise SystemExit("a wrong password was taken")
except redis.AuthenticationError:
    pass
try:
    client(locked_port).ping()
    raise SystemExit("no password was taken")
except redis.AuthenticationError:
    pass
print("fine")
