#!/usr/bin/env python3
"""Checks docs/spec/vectors.json against the specification, without any of plait's own code.

A second implementation, small and slow: it follows docs/spec/wire.md and the Noise specification
(https://noiseprotocol.org/noise.html), on the primitives of the package `cryptography` and of
Python's hashlib. From the private keys and the other inputs it makes every message anew and
compares all bytes, then opens each one with the receiver's keys only and compares what it says.
"""

import hashlib
import hmac
import ipaddress
import json
import pathlib
import struct
import sys

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError:
    sys.exit(
        "verify_vectors: error: this Python lacks the package cryptography\n"
        "  help: apt-get install python3-cryptography, and run it with /usr/bin/python3"
    )

VERSION = 1
RAW, RAW_PUBLIC = Encoding.Raw, PublicFormat.Raw
INITIATION, RESPONSE, COOKIE_REPLY, DATA, CONTROL = 1, 2, 3, 4, 5
checks = 0


def same(what, found, expected):
    """Ends the program with both values when they differ."""
    global checks
    checks += 1
    if found != expected:
        show = lambda value: value.hex() if isinstance(value, bytes) else repr(value)
        sys.exit(f"{what}:\n  expected  {show(expected)}\n  made here {show(found)}")


def refused(what, open_it):
    """Ends the program when something opens that must not."""
    global checks
    checks += 1
    try:
        open_it()
    except InvalidTag:
        return
    sys.exit(f"{what}: was accepted")


def blake2s(*parts, key=b"", size=32):
    return hashlib.blake2s(b"".join(parts), key=key, digest_size=size).digest()


def first_byte(kind):  # W-1
    return bytes([VERSION << 4 | kind])


# Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s, as H-1 asks for it.


def public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes(RAW, RAW_PUBLIC)


def dh(private, public_key):
    own = X25519PrivateKey.from_private_bytes(private)
    return own.exchange(X25519PublicKey.from_public_bytes(public_key))


def hkdf(chaining_key, material, outputs):
    mac = lambda key, data: hmac.new(key, data, hashlib.blake2s).digest()
    secret, made, last = mac(chaining_key, material), [], b""
    for number in range(1, outputs + 1):
        last = mac(secret, last + bytes([number]))
        made.append(last)
    return made


class Symmetric:
    """The SymmetricState of the Noise specification, section 5.2."""

    def __init__(self, prologue):
        name = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
        self.hash = self.chaining_key = blake2s(name)  # The name is longer than a hash.
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = blake2s(self.hash, data)

    def mix_key(self, material):
        self.chaining_key, self.key = hkdf(self.chaining_key, material, 2)
        self.nonce = 0

    def mix_key_and_hash(self, material):
        self.chaining_key, extra, self.key = hkdf(self.chaining_key, material, 3)
        self.mix_hash(extra)
        self.nonce = 0

    def _crypt(self, method, data):
        nonce = struct.pack("<4xQ", self.nonce)
        self.nonce += 1
        return getattr(ChaCha20Poly1305(self.key), method)(nonce, data, self.hash)

    def encrypt(self, text):
        sealed = self._crypt("encrypt", text)
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        text = self._crypt("decrypt", sealed)
        self.mix_hash(sealed)
        return text

    def ephemeral(self, key):  # In a handshake with a psk, `e` is mixed into the key as well.
        self.mix_hash(key)
        self.mix_key(key)

    def split(self):  # K-1
        return hkdf(self.chaining_key, b"", 2)


def start(initiator_index, responder_public):
    noise = Symmetric(b"plait 1" + initiator_index)  # H-1
    noise.mix_hash(responder_public)  # The pre-message `<- s`.
    return noise


def write_first(noise, static, ephemeral, peer, payload):
    e = public(ephemeral)
    noise.ephemeral(e)
    noise.mix_key(dh(ephemeral, peer))
    s = noise.encrypt(public(static))
    noise.mix_key(dh(static, peer))
    return e + s + noise.encrypt(payload)


def read_first(noise, static, message):
    e, s, payload = message[:32], message[32:80], message[80:]
    noise.ephemeral(e)
    noise.mix_key(dh(static, e))
    peer = noise.decrypt(s)
    noise.mix_key(dh(static, peer))
    return peer, e, noise.decrypt(payload)


def write_second(noise, ephemeral, peer, peer_ephemeral, psk, payload):
    e = public(ephemeral)
    noise.ephemeral(e)
    noise.mix_key(dh(ephemeral, peer_ephemeral))
    noise.mix_key(dh(ephemeral, peer))
    noise.mix_key_and_hash(psk)
    return e + noise.encrypt(payload)


def read_second(noise, static, ephemeral, psk, message):
    e, payload = message[:32], message[32:]
    noise.ephemeral(e)
    noise.mix_key(dh(ephemeral, e))
    noise.mix_key(dh(static, e))
    noise.mix_key_and_hash(psk)
    return noise.decrypt(payload)


# Handshake messages.


def index_bytes(index):  # H-3
    return struct.pack(">I", index << 8)


def timestamp(time):  # H-5
    return struct.pack(">QI", time["seconds"], time["nanoseconds"])


def hello(side):  # H-4
    flags = side["aes_in_hardware"] | side["sends_again"] << 1 | side["revision"] << 2
    return bytes.fromhex(side["incarnation"]) + struct.pack(">BH", flags, side["inner_mtu"])


def with_macs(message, receiver):  # H-6
    key = blake2s(b"plait 1 mac1", receiver)
    return message + blake2s(message, key=key, size=16) + bytes(16)


def check_handshake(case):
    name = case["name"]
    a, b = case["initiator"], case["responder"]
    keys = lambda side: [bytes.fromhex(side[f"{kind}private_key"]) for kind in ("", "ephemeral_")]
    (a_static, a_ephemeral), (b_static, b_ephemeral) = keys(a), keys(b)
    a_public, b_public = public(a_static), public(b_static)
    same(f"{name}: initiator's public key", a_public.hex(), a["public_key"])
    same(f"{name}: responder's public key", b_public.hex(), b["public_key"])
    psk = bytes.fromhex(case["preshared_key"])
    a_index, b_index = index_bytes(a["index"]), index_bytes(b["index"])

    # The initiation, made and read (H-2).
    sender = start(a_index, b_public)
    said = timestamp(case["timestamp"]) + hello(a)
    initiation = first_byte(INITIATION) + a_index
    initiation += write_first(sender, a_static, a_ephemeral, b_public, said)
    initiation = with_macs(initiation, b_public)
    same(f"{name}: initiation", initiation, bytes.fromhex(case["initiation"]))
    same(f"{name}: length of the initiation", len(initiation), 156)

    # Both answers (H-3, H-12), each from the state after the initiation.
    def answer(index, payload):
        receiver = start(initiation[1:5], b_public)
        peer, peer_ephemeral, text = read_first(receiver, b_static, initiation[5:-32])
        same(f"{name}: sender and text of the initiation", (peer, text), (a_public, said))
        message = first_byte(RESPONSE) + a_index + index
        message += write_second(receiver, b_ephemeral, peer, peer_ephemeral, psk, payload)
        return with_macs(message, a_public), receiver

    refusal, _ = answer(bytes(4), timestamp(case["refusal_newest"]) + bytes(3))
    same(f"{name}: refusal", refusal, bytes.fromhex(case["refusal"]))
    response, receiver = answer(b_index, b_index + hello(b))
    same(f"{name}: response", response, bytes.fromhex(case["response"]))
    same(f"{name}: length of the response", len(response), 104)
    text = read_second(sender, a_static, a_ephemeral, psk, response[9:-32])
    same(f"{name}: text of the response", text, b_index + hello(b))

    # Keys (K-1 to K-3).
    secrets = dict(zip(("initiator", "responder"), sender.split()))
    same(f"{name}: both sides' secrets", list(secrets.values()), receiver.split())
    for side, secret in secrets.items():
        same(f"{name}: secret of the {side}", secret.hex(), case[f"secret_from_{side}"])
    aes = a["aes_in_hardware"] and b["aes_in_hardware"]
    same(f"{name}: cipher", "AES-256-GCM" if aes else "ChaCha20-Poly1305", case["cipher"])
    for row in case["path_keys"]:
        for side, secret in secrets.items():
            key = path_key(secret, row["cipher"], row["path"])
            what = f"{name}: {row['cipher']} key of path {row['path']} of the {side}"
            same(what, key.hex(), row[f"from_{side}"])
    for number, datagram in enumerate(case["datagrams"]):
        check_datagram(f"{name}: datagram {number}", case, secrets, datagram)


# Sealed datagrams.

CIPHERS = {"AES-256-GCM": (0, AESGCM), "ChaCha20-Poly1305": (1, ChaCha20Poly1305)}


def path_key(secret, cipher, path):  # K-2
    return blake2s(b"plait 1 path key", bytes([CIPHERS[cipher][0], path]), key=secret)


def check_datagram(name, case, secrets, row):
    sender, path, number = row["from"], row["path"], row["packet_number"]
    receiver = "responder" if sender == "initiator" else "initiator"
    sent = struct.pack(">H", row["send_timestamp"])
    if row["kind"] == "data":  # W-4
        text = struct.pack(">I", row["bond_seq"] & 0xFFFFFF)[1:]
        text += struct.pack(">H", row["predecessor_distance"]) + sent
        text += bytes.fromhex(row["inner_packet"])
        kind, overhead = DATA, 32 + len(row["inner_packet"]) // 2
    else:  # W-5
        frames = b"".join(frame(fields) for fields in row["frames"])
        same(f"{name}: a mark has no frames", row["kind"] == "mark", not frames)
        text = sent + struct.pack(">I", row["next_bond_seq"] & 0xFFFFFF)[1:] + frames
        kind, overhead = CONTROL, 30 + len(frames)
    receiver_index = case[receiver]["index"] << 8 | path  # W-3
    header = first_byte(kind) + struct.pack(">II", receiver_index, number & 0xFFFFFFFF)  # W-2
    nonce = struct.pack(">4xQ", number)  # K-4
    cipher = CIPHERS[case["cipher"]][1](path_key(secrets[sender], case["cipher"], path))
    sealed = header + cipher.encrypt(nonce, text, header)
    datagram = bytes.fromhex(row["datagram"])
    same(name, sealed, datagram)
    same(f"{name}: length", len(datagram), overhead)
    same(f"{name}: text", cipher.decrypt(nonce, datagram[9:], datagram[:9]), text)
    changed = datagram[:5] + bytes([datagram[5] ^ 1]) + datagram[6:]
    refused(f"{name} with another header", lambda: cipher.decrypt(nonce, changed[9:], changed[:9]))
    other = CIPHERS[case["cipher"]][1](path_key(secrets[receiver], case["cipher"], path))
    refused(f"{name} sent back", lambda: other.decrypt(nonce, datagram[9:], datagram[:9]))


def frame(f):  # C-2 and after
    pack = struct.pack
    makers = {
        "PATH_CHALLENGE": lambda: b"\x01" + bytes.fromhex(f["token"]),
        "PATH_RESPONSE": lambda: b"\x02" + bytes.fromhex(f["token"]),
        "PATH_INFO": lambda: b"\x03" + path_info(f),
        "PROBE": lambda: pack(">BI", 4, f["id"]),
        "PROBE_ECHO": lambda: pack(">BI", 5, f["id"]),
        "ACK": lambda: b"\x06" + ack(f),
        "LOSS_REPORT": lambda: pack(
            ">BBQQQ", 7, f["path"], f["received"], f["lost"], f["late"]
        ),
        "CLOSE": lambda: b"\x08",
        "PATH_DEAD": lambda: pack(">BB", 9, f["path"]),
        "PATH_CLOSE": lambda: pack(">BB", 10, f["path"]),
        "MTU_PROBE": lambda: pack(">BIH", 11, f["id"], f["padding"]) + bytes(f["padding"]),
        "MTU_ECHO": lambda: pack(">BI", 12, f["id"]),
        "RELEASE": lambda: pack(">BHHH", 14, f["major"], f["minor"], f["patch"]),
        "DISCARDS": lambda: pack(">BII", 13, f["arrived"], f["thrown_away"]),
    }
    return makers[f["type"]]()


def path_info(f):  # C-3
    flags, name = f["standby"] | f["metered"] << 1, f["name"].encode("ascii")
    fixed = (f["price_class"], f["place"], f["weight"], flags, len(name))
    return struct.pack(">BBHBB", *fixed) + name


def ack(f):  # C-6
    fixed = (f["index"], f["largest"], f["delay"], f["transit"], len(f["ranges"]))
    ranges = (struct.pack(">HI", r["missing"], r["length"]) for r in f["ranges"])
    return struct.pack(">IIHHB", *fixed) + b"".join(ranges)


# Cookies (H-10).


def hchacha20(key, nonce):
    """The subkey of XChaCha20 (draft-irtf-cfrg-xchacha, section 2.2). ChaCha20's first block is
    the permuted state plus the initial one; HChaCha20 is the permuted state's first and last row.
    """
    block = Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor().update(bytes(64))
    words = struct.unpack("<16I", block)
    initial = struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<4I", nonce)
    rows = words[:4] + words[12:]
    return struct.pack("<8I", *((row - was) % 2**32 for row, was in zip(rows, initial)))


def check_cookie(case, handshake):
    name = f"cookie in answer to the {case['in_answer_to']}"
    answered = bytes.fromhex(handshake[case["in_answer_to"]])
    giver = "responder" if case["in_answer_to"] == "initiation" else "initiator"
    giver_public = bytes.fromhex(handshake[giver]["public_key"])
    sender_at = 1 if answered[:1] == first_byte(INITIATION) else 5
    mac1 = answered[-32:-16]
    host, port = case["source"].rsplit(":", 1)
    address = ipaddress.ip_address(host.strip("[]")).packed + struct.pack(">H", int(port))
    cookie = blake2s(address, key=bytes.fromhex(case["secret"]), size=16)
    same(name, cookie.hex(), case["cookie"])
    nonce = bytes.fromhex(case["nonce"])
    key = blake2s(b"plait 1 cookie", giver_public)
    cipher, short = ChaCha20Poly1305(hchacha20(key, nonce[:16])), bytes(4) + nonce[16:]
    reply = first_byte(COOKIE_REPLY) + answered[sender_at : sender_at + 4] + nonce
    reply += cipher.encrypt(short, cookie, mac1)
    kept = bytes.fromhex(case["cookie_reply"])
    same(f"{name}: reply", reply, kept)
    same(f"{name}: length of the reply", len(reply), 61)
    same(f"{name}: opened", cipher.decrypt(short, kept[29:], mac1), cookie)
    shown = answered[:-16] + blake2s(answered[:-16], key=cookie, size=16)
    same(f"{name}: message with mac2", shown, bytes.fromhex(case["with_mac2"]))


def main():
    beside = pathlib.Path(__file__).with_name("vectors.json")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    vectors = json.loads(path.read_text())
    same("protocol", vectors["protocol"], "plait 1")
    for case in vectors["handshakes"]:
        check_handshake(case)
    for case in vectors["cookies"]:
        check_cookie(case, vectors["handshakes"][0])
    datagrams = sum(len(case["datagrams"]) for case in vectors["handshakes"])
    print(
        f"{path.name}: {len(vectors['handshakes'])} handshakes, {len(vectors['cookies'])} cookies, "
        f"{datagrams} sealed datagrams: {checks} checks, all the same"
    )


if __name__ == "__main__":
    main()
