"""A WebSocket server that repeats what it hears, and a client to talk to it. No more of the protocol
than that takes: short messages in one piece.

usage: websocket.py serve [PORT]         prints its address when it listens; a free port unless told
       websocket.py talk ADDRESS COUNT   sends so many messages, and prints what comes back
"""
import base64
import hashlib
import os
import socket
import socketserver
import struct
import sys

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE = 1, 8


def read_head(stream):
    first, fields = stream.readline().decode().strip(), {}
    for line in iter(stream.readline, b"\r\n"):
        if not line:
            break
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    return first, fields


def read_frame(stream):
    head = stream.read(2)
    if len(head) < 2:
        return CLOSE, b""
    mask = stream.read(4) if head[1] & 0x80 else bytes(4)
    payload = stream.read(head[1] & 0x7F)
    return head[0] & 0x0F, bytes(byte ^ mask[nth % 4] for nth, byte in enumerate(payload))


def write_frame(stream, opcode, payload, mask=None):
    head = bytes([0x80 | opcode, len(payload) | (0x80 if mask else 0)])
    if mask:
        payload = mask + bytes(byte ^ mask[nth % 4] for nth, byte in enumerate(payload))
    stream.write(head + payload)
    stream.flush()


class Repeater(socketserver.StreamRequestHandler):
    def handle(self):
        stream = self.request.makefile("rwb")
        _, fields = read_head(stream)
        key = fields.get(b"sec-websocket-key", b"")
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        stream.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
        stream.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        stream.flush()
        opcode = TEXT
        while opcode != CLOSE:
            opcode, payload = read_frame(stream)
            write_frame(stream, opcode, payload)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # others close connections as they like


def talk(address, count):
    host, port = address.rsplit(":", 1)
    stream = socket.create_connection((host, int(port)), timeout=10).makefile("rwb")
    key = base64.b64encode(os.urandom(16)).decode()
    stream.write(
        f"GET /chat HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    stream.flush()
    first, _ = read_head(stream)
    print(first)
    if " 101" not in first:
        return
    for nth in range(count):
        write_frame(stream, TEXT, f"message {nth + 1}".encode(), os.urandom(4))
        opcode, payload = read_frame(stream)
        if opcode == CLOSE:
            code = struct.unpack("!H", payload[:2])[0] if payload else "without a word"
            print(f"closed: {code} {payload[2:].decode()}")
            return
        print(payload.decode())
    write_frame(stream, CLOSE, struct.pack("!H", 1000), os.urandom(4))


if __name__ == "__main__":
    if sys.argv[1] == "talk":
        talk(sys.argv[2], int(sys.argv[3]))
    else:
        server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Repeater)
        print("{}:{}".format(*server.server_address), flush=True)
        server.serve_forever()
