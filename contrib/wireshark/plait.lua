-- Dissector of plait's wire protocol, version 1 (docs/spec/wire.md), for Wireshark 3.6 and later.
--
-- What is in clear is always shown. What is sealed is opened with a log of keys, which a gateway
-- writes when PLAIT_KEYLOG names a file (docs/spec/keylog.md). Wireshark's Lua has no
-- cryptography, so BLAKE2s, ChaCha20-Poly1305 and AES-256-GCM stand here, in plain Lua: slow, a
-- few milliseconds for a full datagram. docs/guide/wireshark.md says how to use it.

local bit = bit or require("bit")
local band, bor, bxor, bnot = bit.band, bit.bor, bit.bxor, bit.bnot
local lshift, rshift, rol, ror, tobit = bit.lshift, bit.rshift, bit.rol, bit.ror, bit.tobit
local byte, char, concat, floor = string.byte, string.char, table.concat, math.floor

------------------------------------------------------------------------------------------------
-- Cryptography.

local function word_le(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    return bor(a, lshift(b, 8), lshift(c, 16), lshift(d, 24))
end

local function word_be(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    return bor(lshift(a, 24), lshift(b, 16), lshift(c, 8), d)
end

local function bytes_le(word)
    return char(band(word, 255), band(rshift(word, 8), 255), band(rshift(word, 16), 255),
        rshift(word, 24))
end

local function bytes_be(word)
    return char(rshift(word, 24), band(rshift(word, 16), 255), band(rshift(word, 8), 255),
        band(word, 255))
end

local function padded(text, size)
    return text .. string.rep("\0", (size - #text % size) % size)
end

-- BLAKE2s with a key of 32 bytes and a digest of 32 (RFC 7693), of a text shorter than a block.
local BLAKE_IV = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}
local SIGMA = {
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
    { 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
    { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
    { 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
    { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
    { 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
    { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
    { 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
    { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
}
local MIXES = {
    { 1, 5, 9, 13 }, { 2, 6, 10, 14 }, { 3, 7, 11, 15 }, { 4, 8, 12, 16 },
    { 1, 6, 11, 16 }, { 2, 7, 12, 13 }, { 3, 8, 9, 14 }, { 4, 5, 10, 15 },
}

local function blake2s_block(state, block, length, is_last)
    local m, v = {}, {}
    for i = 0, 15 do m[i] = word_le(block, 4 * i + 1) end
    for i = 1, 8 do v[i], v[i + 8] = state[i], BLAKE_IV[i] end
    v[13] = bxor(v[13], length)
    if is_last then v[15] = bnot(v[15]) end
    for round = 1, 10 do
        local order = SIGMA[round]
        for n, mix in ipairs(MIXES) do
            local a, b, c, d = mix[1], mix[2], mix[3], mix[4]
            v[a] = tobit(v[a] + v[b] + m[order[2 * n - 1]])
            v[d] = ror(bxor(v[d], v[a]), 16)
            v[c] = tobit(v[c] + v[d])
            v[b] = ror(bxor(v[b], v[c]), 12)
            v[a] = tobit(v[a] + v[b] + m[order[2 * n]])
            v[d] = ror(bxor(v[d], v[a]), 8)
            v[c] = tobit(v[c] + v[d])
            v[b] = ror(bxor(v[b], v[c]), 7)
        end
    end
    for i = 1, 8 do state[i] = bxor(state[i], v[i], v[i + 8]) end
end

local function blake2s(key, text)
    local state = {}
    for i = 1, 8 do state[i] = tobit(BLAKE_IV[i]) end
    state[1] = bxor(state[1], 0x01010000, lshift(#key, 8), 32)
    blake2s_block(state, padded(key, 64), 64, false)
    blake2s_block(state, padded(text, 64), 64 + #text, true)
    local out = {}
    for i = 1, 8 do out[i] = bytes_le(state[i]) end
    return concat(out)
end

-- ChaCha20 (RFC 8439 section 2.3): one block of the key stream as 16 words.
local function chacha_block(key, nonce, counter)
    local start = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }
    for i = 0, 7 do start[5 + i] = word_le(key, 4 * i + 1) end
    start[13] = counter
    for i = 0, 2 do start[14 + i] = word_le(nonce, 4 * i + 1) end
    local x = {}
    for i = 1, 16 do x[i] = start[i] end
    for _ = 1, 10 do
        for _, mix in ipairs(MIXES) do
            local ai, bi, ci, di = mix[1], mix[2], mix[3], mix[4]
            local a, b, c, d = x[ai], x[bi], x[ci], x[di]
            a = tobit(a + b); d = rol(bxor(d, a), 16)
            c = tobit(c + d); b = rol(bxor(b, c), 12)
            a = tobit(a + b); d = rol(bxor(d, a), 8)
            c = tobit(c + d); b = rol(bxor(b, c), 7)
            x[ai], x[bi], x[ci], x[di] = a, b, c, d
        end
    end
    for i = 1, 16 do x[i] = tobit(x[i] + start[i]) end
    return x
end

local function chacha_xor(key, nonce, text)
    local out, whole = {}, padded(text, 64)
    for at = 1, #text, 64 do
        local stream = chacha_block(key, nonce, (at - 1) / 64 + 1)
        for i = 1, 16 do
            out[#out + 1] = bytes_le(bxor(stream[i], word_le(whole, at + 4 * i - 4)))
        end
    end
    return concat(out):sub(1, #text)
end

-- Poly1305 (RFC 8439 section 2.5) in ten limbs of 13 bits: no product leaves what a double holds.
local function limbs(bytes)
    local out, held, bits, at = {}, 0, 0, 1
    for i = 0, 9 do
        while bits < 13 and at <= #bytes do
            held = held + bytes[at] * 2 ^ bits
            bits, at = bits + 8, at + 1
        end
        out[i] = held % 8192
        held, bits = floor(held / 8192), math.max(bits - 13, 0)
    end
    return out
end

local function poly1305(key, text)
    local r_bytes = { byte(key, 1, 16) }
    for _, i in ipairs({ 4, 8, 12, 16 }) do r_bytes[i] = band(r_bytes[i], 15) end
    for _, i in ipairs({ 5, 9, 13 }) do r_bytes[i] = band(r_bytes[i], 252) end
    local r, h = limbs(r_bytes), {}
    for i = 0, 9 do h[i] = 0 end
    for at = 1, #text, 16 do
        local block = { byte(text, at, math.min(at + 15, #text)) }
        block[#block + 1] = 1
        local n = limbs(block)
        for i = 0, 9 do h[i] = h[i] + n[i] end
        local product, carry = {}, 0
        for i = 0, 9 do
            local sum = carry
            for j = 0, i do sum = sum + h[j] * r[i - j] end
            -- What lies above 2^130 comes back five times.
            for j = i + 1, 9 do sum = sum + 5 * h[j] * r[10 + i - j] end
            product[i] = sum % 8192
            carry = floor(sum / 8192)
        end
        product[0] = product[0] + 5 * carry
        carry = floor(product[0] / 8192)
        product[0] = product[0] % 8192
        product[1] = product[1] + carry
        h = product
    end
    local carry = 0
    for _ = 1, 2 do
        for i = 0, 9 do
            h[i] = h[i] + carry
            carry = floor(h[i] / 8192)
            h[i] = h[i] % 8192
        end
        carry = carry * 5
    end
    -- h - (2^130 - 5), if that is not negative.
    local less, borrow = {}, 5
    for i = 0, 9 do
        less[i] = h[i] + borrow
        borrow = floor(less[i] / 8192)
        less[i] = less[i] % 8192
    end
    if borrow > 0 then h = less end
    local out, held, bits, limb, sum = {}, 0, 0, 0, 0
    for i = 1, 16 do
        while bits < 8 do
            held = held + (h[limb] or 0) * 2 ^ bits
            bits, limb = bits + 13, limb + 1
        end
        sum = sum + held % 256 + byte(key, 16 + i)
        out[i] = char(sum % 256)
        sum = floor(sum / 256)
        held, bits = floor(held / 256), bits - 8
    end
    return concat(out)
end

-- Lengths as two numbers of 64 bits; a datagram's are far below 2^32.
local function length_le(length) return bytes_le(length) .. "\0\0\0\0" end
local function length_be_bits(length) return "\0\0\0\0" .. bytes_be(length * 8) end

local function chacha_open(key, nonce, clear, text)
    local one_time = {}
    for i, word in ipairs(chacha_block(key.bytes, nonce, 0)) do one_time[i] = bytes_le(word) end
    local proven = padded(clear, 16) .. padded(text, 16) .. length_le(#clear) .. length_le(#text)
    return chacha_xor(key.bytes, nonce, text), poly1305(concat(one_time):sub(1, 32), proven)
end

-- AES-256 (FIPS 197) by tables of words: the S-box is computed, not typed.
local SBOX, ROUND = {}, { {}, {}, {}, {} }
do
    local p, q = 1, 1
    local function double(x) return x < 128 and 2 * x or bxor(2 * x, 0x11b) end
    repeat
        p = bxor(p, double(p))
        q = bxor(q, band(lshift(q, 1), 255))
        q = bxor(q, band(lshift(q, 2), 255))
        q = bxor(q, band(lshift(q, 4), 255))
        if q >= 128 then q = bxor(q, 9) end
        local turned = q
        for turn = 1, 4 do
            turned = bxor(turned, band(bor(lshift(q, turn), rshift(q, 8 - turn)), 255))
        end
        SBOX[p] = bxor(turned, 0x63)
    until p == 1
    SBOX[0] = 0x63
    for x = 0, 255 do
        local s = SBOX[x]
        local two = double(s)
        local word = bor(lshift(two, 24), lshift(s, 16), lshift(s, 8), bxor(two, s))
        for column = 1, 4 do ROUND[column][x] = ror(word, 8 * (column - 1)) end
    end
end
local R0, R1, R2, R3 = ROUND[1], ROUND[2], ROUND[3], ROUND[4]

local function substituted(word)
    return bor(lshift(SBOX[rshift(word, 24)], 24), lshift(SBOX[band(rshift(word, 16), 255)], 16),
        lshift(SBOX[band(rshift(word, 8), 255)], 8), SBOX[band(word, 255)])
end

local function aes_schedule(key)
    local w, constant = {}, 1
    for i = 0, 7 do w[i] = word_be(key, 4 * i + 1) end
    for i = 8, 59 do
        local last = w[i - 1]
        if i % 8 == 0 then
            last = bxor(substituted(rol(last, 8)), lshift(constant, 24))
            constant = constant * 2
        elseif i % 8 == 4 then
            last = substituted(last)
        end
        w[i] = bxor(w[i - 8], last)
    end
    return w
end

local function aes_block(w, a, b, c, d)
    a, b, c, d = bxor(a, w[0]), bxor(b, w[1]), bxor(c, w[2]), bxor(d, w[3])
    for k = 4, 52, 4 do
        a, b, c, d =
            bxor(R0[rshift(a, 24)], R1[band(rshift(b, 16), 255)], R2[band(rshift(c, 8), 255)],
                R3[band(d, 255)], w[k]),
            bxor(R0[rshift(b, 24)], R1[band(rshift(c, 16), 255)], R2[band(rshift(d, 8), 255)],
                R3[band(a, 255)], w[k + 1]),
            bxor(R0[rshift(c, 24)], R1[band(rshift(d, 16), 255)], R2[band(rshift(a, 8), 255)],
                R3[band(b, 255)], w[k + 2]),
            bxor(R0[rshift(d, 24)], R1[band(rshift(a, 16), 255)], R2[band(rshift(b, 8), 255)],
                R3[band(c, 255)], w[k + 3])
    end
    local function last(p, q, r, s, k)
        return bxor(bor(lshift(SBOX[rshift(p, 24)], 24), lshift(SBOX[band(rshift(q, 16), 255)], 16),
            lshift(SBOX[band(rshift(r, 8), 255)], 8), SBOX[band(s, 255)]), w[k])
    end
    return last(a, b, c, d, 56), last(b, c, d, a, 57), last(c, d, a, b, 58), last(d, a, b, c, 59)
end

-- GHASH (NIST SP 800-38D) by a table of the products of the hash key with each byte.
local REDUCED = {}
-- What a byte that falls off the end brings back.
for x = 0, 255 do
    local a, low = 0, x
    for _ = 1, 8 do
        local falls = band(low, 1)
        low = rshift(low, 1)
        a = rshift(a, 1)
        if falls == 1 then a = bxor(a, lshift(0xe1, 24)) end
    end
    REDUCED[x] = a
end

local function ghash_table(a, b, c, d)
    local products = { [0] = { 0, 0, 0, 0 } }
    local at = 128
    while at >= 1 do
        products[at] = { a, b, c, d }
        local falls = band(d, 1)
        d = bor(rshift(d, 1), lshift(c, 31))
        c = bor(rshift(c, 1), lshift(b, 31))
        b = bor(rshift(b, 1), lshift(a, 31))
        a = rshift(a, 1)
        if falls == 1 then a = bxor(a, lshift(0xe1, 24)) end
        at = at / 2
    end
    for high = 1, 7 do
        local top = 2 ^ high
        for low = 1, top - 1 do
            local p, q = products[top], products[low]
            products[top + low] =
                { bxor(p[1], q[1]), bxor(p[2], q[2]), bxor(p[3], q[3]), bxor(p[4], q[4]) }
        end
    end
    return products
end

local function ghash(products, text)
    local a, b, c, d = 0, 0, 0, 0
    for at = 1, #text, 16 do
        a, b = bxor(a, word_be(text, at)), bxor(b, word_be(text, at + 4))
        c, d = bxor(c, word_be(text, at + 8)), bxor(d, word_be(text, at + 12))
        local x = { a, b, c, d }
        a, b, c, d = 0, 0, 0, 0
        for i = 15, 0, -1 do
            local falls = band(d, 255)
            d = bor(rshift(d, 8), lshift(c, 24))
            c = bor(rshift(c, 8), lshift(b, 24))
            b = bor(rshift(b, 8), lshift(a, 24))
            a = bxor(rshift(a, 8), REDUCED[falls])
            local word = x[floor(i / 4) + 1]
            local p = products[band(rshift(word, 24 - 8 * (i % 4)), 255)]
            a, b, c, d = bxor(a, p[1]), bxor(b, p[2]), bxor(c, p[3]), bxor(d, p[4])
        end
    end
    return a, b, c, d
end

local function gcm_open(key, nonce, clear, text)
    if not key.schedule then
        key.schedule = aes_schedule(key.bytes)
        key.products = ghash_table(aes_block(key.schedule, 0, 0, 0, 0))
    end
    local n1, n2, n3 = word_be(nonce, 1), word_be(nonce, 5), word_be(nonce, 9)
    local out, whole = {}, padded(text, 16)
    for at = 1, #text, 16 do
        local a, b, c, d = aes_block(key.schedule, n1, n2, n3, (at - 1) / 16 + 2)
        out[#out + 1] = bytes_be(bxor(a, word_be(whole, at)))
            .. bytes_be(bxor(b, word_be(whole, at + 4)))
            .. bytes_be(bxor(c, word_be(whole, at + 8)))
            .. bytes_be(bxor(d, word_be(whole, at + 12)))
    end
    local proven = padded(clear, 16) .. whole .. length_be_bits(#clear) .. length_be_bits(#text)
    local a, b, c, d = ghash(key.products, proven)
    local e, f, g, h = aes_block(key.schedule, n1, n2, n3, 1)
    local tag = bytes_be(bxor(a, e)) .. bytes_be(bxor(b, f)) .. bytes_be(bxor(c, g))
        .. bytes_be(bxor(d, h))
    return concat(out):sub(1, #text), tag
end

------------------------------------------------------------------------------------------------
-- The log of keys.

local plait = Proto("plait", "plait")
plait.prefs.port = Pref.uint("UDP port", 7788, "Port on which the gateway listens")
plait.prefs.keylog = Pref.string("Log of keys", "", "File; when empty, that of PLAIT_KEYLOG")

local CIPHERS = { [0] = gcm_open, [1] = chacha_open }
-- Secrets by session index; a session may be there with several, as from two captures in a row.
local secrets, path_keys, read_bytes = {}, {}, 0

local function log_name()
    local name = plait.prefs.keylog
    if name == nil or name == "" then name = os.getenv("PLAIT_KEYLOG") end
    return name
end

local function read_log()
    local name = log_name()
    local file = name and io.open(name, "rb")
    if not file then return end
    file:seek("set", read_bytes)
    for line in file:lines() do
        local index, cipher, hex = line:match("^PLAIT1_DIRECTION (%x+) (%d) (%x+)%s*$")
        if index and #hex == 64 then
            local secret = hex:gsub("..", function(two) return char(tonumber(two, 16)) end)
            local number = tonumber(index, 16)
            secrets[number] = secrets[number] or {}
            table.insert(secrets[number], { cipher = tonumber(cipher), secret = secret })
        end
    end
    read_bytes = file:seek("end")
    file:close()
end

local function forget_log() secrets, path_keys, read_bytes = {}, {}, 0 end

function plait.init() forget_log() end

-- The keys that a receiver index may have.
local function keys_of(session, path)
    if not secrets[session] then read_log() end
    local name = session * 256 + path
    if not path_keys[name] and secrets[session] then
        path_keys[name] = {}
        for _, one in ipairs(secrets[session]) do
            local label = "plait 1 path key" .. char(one.cipher, path)
            table.insert(path_keys[name],
                { cipher = one.cipher, bytes = blake2s(one.secret, label) })
        end
    end
    return path_keys[name] or {}
end

------------------------------------------------------------------------------------------------
-- Fields.

local KINDS = {
    [1] = "Initiation", [2] = "Response", [3] = "Cookie reply", [4] = "Data", [5] = "Control",
}
local FRAMES = {
    [1] = "PATH_CHALLENGE", [2] = "PATH_RESPONSE", [3] = "PATH_INFO", [4] = "PROBE",
    [5] = "PROBE_ECHO", [6] = "ACK", [7] = "LOSS_REPORT", [8] = "CLOSE", [9] = "PATH_DEAD",
    [10] = "PATH_CLOSE", [11] = "MTU_PROBE", [12] = "MTU_ECHO", [13] = "DISCARDS",
    [14] = "RELEASE",
}
local CIPHER_NAMES = { [0] = "AES-256-GCM", [1] = "ChaCha20-Poly1305" }

local f = {}
local function field(name, make, title, ...)
    f[name] = make("plait." .. name, title, ...)
end
field("version", ProtoField.uint8, "Version", base.DEC, nil, 0xf0)
field("type", ProtoField.uint8, "Type", base.DEC, KINDS, 0x0f)
field("sender", ProtoField.uint32, "Sender index", base.HEX)
field("receiver", ProtoField.uint32, "Receiver index", base.HEX)
field("ephemeral", ProtoField.bytes, "Ephemeral key")
field("static", ProtoField.bytes, "Static key, encrypted")
field("static_tag", ProtoField.bytes, "Tag of the static key")
field("payload", ProtoField.bytes, "Payload, encrypted")
field("payload_tag", ProtoField.bytes, "Tag of the payload")
field("mac1", ProtoField.bytes, "mac1")
field("mac2", ProtoField.bytes, "mac2")
field("nonce", ProtoField.bytes, "Nonce")
field("cookie", ProtoField.bytes, "Cookie, encrypted")
field("cookie_tag", ProtoField.bytes, "Tag of the cookie")
field("session", ProtoField.uint24, "Session index", base.HEX)
field("path", ProtoField.uint8, "Path id", base.DEC)
field("number", ProtoField.uint32, "Packet number, low 32 bits", base.DEC)
field("sealed", ProtoField.bytes, "Sealed")
field("tag", ProtoField.bytes, "Tag")
field("cipher", ProtoField.uint8, "Cipher", base.DEC, CIPHER_NAMES)
field("seq", ProtoField.uint24, "Bond sequence number, low 24 bits", base.DEC)
field("prev", ProtoField.uint16, "Distance to the predecessor", base.DEC)
field("sent", ProtoField.uint16, "Send timestamp (64 us)", base.DEC)
field("next_seq", ProtoField.uint24, "Next bond sequence number, low 24 bits", base.DEC)
field("inner", ProtoField.bytes, "Inner packet")
field("frame", ProtoField.uint8, "Frame", base.DEC, FRAMES)
field("token", ProtoField.uint64, "Token", base.HEX)
field("price", ProtoField.uint8, "Price class", base.DEC)
field("order", ProtoField.uint8, "Place in the owner's configuration", base.DEC)
field("weight", ProtoField.uint16, "Weight", base.DEC)
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("standby", ProtoField.bool, "Standby", 8, nil, 0x01)
field("metered", ProtoField.bool, "Metered", 8, nil, 0x02)
field("name_length", ProtoField.uint8, "Length of the name", base.DEC)
field("name", ProtoField.string, "Name")
field("probe", ProtoField.uint32, "Id", base.HEX)
field("ack_index", ProtoField.uint32, "Receiver index of what is acknowledged", base.HEX)
field("ack_largest", ProtoField.uint32, "Highest packet number, low 32 bits", base.DEC)
field("ack_delay", ProtoField.uint16, "Time since its arrival (64 us)", base.DEC)
field("ack_transit", ProtoField.uint16, "Arrival less send timestamp (64 us)", base.DEC)
field("ack_ranges", ProtoField.uint8, "Ranges", base.DEC)
field("ack_gap", ProtoField.uint16, "Missing above the range", base.DEC)
field("ack_length", ProtoField.uint32, "Length of the range", base.DEC)
field("report_received", ProtoField.uint64, "Data packets received", base.DEC)
field("report_lost", ProtoField.uint64, "Counted lost", base.DEC)
field("report_late", ProtoField.uint64, "Arrived after that", base.DEC)
field("padding_length", ProtoField.uint16, "Length of the padding", base.DEC)
field("padding", ProtoField.bytes, "Padding")
field("arrived", ProtoField.uint32, "Data packets that arrived lately", base.DEC)
field("major", ProtoField.uint16, "First number of the release", base.DEC)
field("minor", ProtoField.uint16, "Second number", base.DEC)
field("patch", ProtoField.uint16, "Third number", base.DEC)
field("discarded", ProtoField.uint32, "Of them thrown away", base.DEC)
field("unknown", ProtoField.bytes, "Unknown bytes")
plait.fields = f

local e = {
    no_key = ProtoExpert.new("plait.no_key", "No key for this datagram",
        expert.group.UNDECODED, expert.severity.NOTE),
    bad_tag = ProtoExpert.new("plait.bad_tag", "The tag fits no key: damaged, or another session",
        expert.group.CHECKSUM, expert.severity.WARN),
    malformed = ProtoExpert.new("plait.malformed", "Not as the specification has it",
        expert.group.MALFORMED, expert.severity.ERROR),
}
plait.experts = e

------------------------------------------------------------------------------------------------
-- Dissection.

-- Reads fields one after the other; what is cut short is unknown bytes.
local Reader = {}
Reader.__index = Reader

local function reader(tvb, tree) return setmetatable({ tvb = tvb, at = 0, tree = tree }, Reader) end

function Reader:left() return self.tvb:len() - self.at end

function Reader:take(name, length, tree)
    if self:left() < length then return nil end
    local range = self.tvb(self.at, length)
    self.at = self.at + length
    local item = (tree or self.tree):add(f[name], range)
    return range, item
end

-- Takes several, each a name and a length; says whether all were there.
function Reader:all(fields, tree)
    for _, one in ipairs(fields) do
        if not self:take(one[1], one[2], tree) then return false end
    end
    return true
end

function Reader:rest_is_unknown()
    if self:left() > 0 then
        local range = self.tvb(self.at)
        local item = self.tree:add(f.unknown, range)
        item:add_proto_expert_info(e.malformed)
        self.at = self.tvb:len()
    end
end

local FIXED = {
    [1] = { { "token", 8 } }, [2] = { { "token", 8 } }, [4] = { { "probe", 4 } },
    [5] = { { "probe", 4 } }, [8] = {}, [9] = { { "path", 1 } }, [10] = { { "path", 1 } },
    [7] = { { "path", 1 }, { "report_received", 8 }, { "report_lost", 8 }, { "report_late", 8 } },
    [12] = { { "probe", 4 } }, [13] = { { "arrived", 4 }, { "discarded", 4 } },
    [14] = { { "major", 2 }, { "minor", 2 }, { "patch", 2 } },
}

local VARIABLE = {
    [3] = function(read, tree)
        if not read:all({ { "price", 1 }, { "order", 1 }, { "weight", 2 } }, tree) then
            return false
        end
        local flags, item = read:take("flags", 1, tree)
        if not flags then return false end
        item:add(f.standby, flags)
        item:add(f.metered, flags)
        local length = read:take("name_length", 1, tree)
        if not length or length:uint() > 15 or band(flags:uint(), 0xfc) ~= 0 then return false end
        return length:uint() == 0 or read:take("name", length:uint(), tree) ~= nil
    end,
    [6] = function(read, tree)
        local head = {
            { "ack_index", 4 }, { "ack_largest", 4 }, { "ack_delay", 2 }, { "ack_transit", 2 },
        }
        if not read:all(head, tree) then return false end
        local count = read:take("ack_ranges", 1, tree)
        if not count or count:uint() < 1 or count:uint() > 32 then return false end
        for _ = 1, count:uint() do
            if not read:all({ { "ack_gap", 2 }, { "ack_length", 4 } }, tree) then return false end
        end
        return true
    end,
    [11] = function(read, tree)
        if not read:take("probe", 4, tree) then return false end
        local length = read:take("padding_length", 2, tree)
        if not length then return false end
        return length:uint() == 0 or read:take("padding", length:uint(), tree) ~= nil
    end,
}

local function frames(read)
    local names = {}
    while read:left() > 0 do
        local from = read.at
        local kind = read.tvb(from, 1):uint()
        if not FRAMES[kind] or #names == 8 then break end
        local tree = read.tree:add(plait, read.tvb(from, 1), FRAMES[kind])
        read:take("frame", 1, tree)
        local whole
        if FIXED[kind] then whole = read:all(FIXED[kind], tree)
        else whole = VARIABLE[kind](read, tree) end
        tree:set_len(read.at - from)
        names[#names + 1] = FRAMES[kind]
        if not whole then
            tree:add_proto_expert_info(e.malformed)
            break
        end
    end
    read:rest_is_unknown()
    return names
end

local ip4, ip6 = Dissector.get("ip"), Dissector.get("ipv6")

local function inner(read, pinfo, root)
    local packet = read.tvb(read.at)
    read.tree:add(f.inner, packet)
    read.at = read.tvb:len()
    local version = rshift(packet(0, 1):uint(), 4)
    -- As with other tunnels the list shows the inner addresses; protocol and words stay plait's.
    local protocol, info = tostring(pinfo.cols.protocol), tostring(pinfo.cols.info)
    if version == 4 then ip4:call(packet:tvb(), pinfo, root)
    elseif version == 6 then ip6:call(packet:tvb(), pinfo, root) end
    pinfo.cols.protocol, pinfo.cols.info = protocol, info
end

-- The plain text of a sealed datagram, and its cipher; or what is wrong.
local function opened(tvb, session, path)
    local keys = keys_of(session, path)
    if #keys == 0 then return nil, nil, e.no_key end
    local length = tvb:len()
    local clear, text = tvb:raw(0, 9), tvb:raw(9, length - 25)
    local tag = tvb:raw(length - 16, 16)
    -- A path key seals less than 2^32 datagrams, so the low bits are the whole number.
    local nonce = "\0\0\0\0\0\0\0\0" .. tvb:raw(5, 4)
    for _, key in ipairs(keys) do
        local plain, computed = CIPHERS[key.cipher](key, nonce, clear, text)
        if computed == tag then return plain, key.cipher, nil end
    end
    return nil, nil, e.bad_tag
end

local function sealed(read, pinfo, tree, root, kind)
    local tvb = read.tvb
    local session, path = read:take("session", 3), read:take("path", 1)
    local number = path and read:take("number", 4)
    if not number or read:left() < 16 then return read:rest_is_unknown() end
    local text = read.tvb(9, read:left() - 16)
    local item = tree:add(f.sealed, text)
    read.at = tvb:len() - 16
    read:take("tag", 16)
    local about = string.format("%s, path %d, number %d", KINDS[kind], path:uint(), number:uint())
    local plain, cipher, problem = opened(tvb, session:uint(), path:uint())
    if problem then
        item:add_proto_expert_info(problem)
        pinfo.cols.info = about
        return
    end
    tree:add(f.cipher, text, cipher):set_generated()
    local opened_tvb = ByteArray.new(plain, true):tvb("plait, opened")
    local inside = reader(opened_tvb(), tree:add(plait, opened_tvb(), "Opened"))
    if kind == 4 then
        if not inside:all({ { "seq", 3 }, { "prev", 2 }, { "sent", 2 } })
            or inside:left() == 0 then
            return inside:rest_is_unknown()
        end
        pinfo.cols.info = about .. ", bond number " .. opened_tvb(0, 3):uint()
        inner(inside, pinfo, root)
    else
        if not inside:all({ { "sent", 2 }, { "next_seq", 3 } }) then
            return inside:rest_is_unknown()
        end
        local names = frames(inside)
        pinfo.cols.info = about .. ": " .. (#names > 0 and concat(names, ", ") or "mark")
    end
end

local HANDSHAKES = {
    [1] = {
        { "sender", 4 }, { "ephemeral", 32 }, { "static", 32 }, { "static_tag", 16 },
        { "payload", 23 }, { "payload_tag", 16 }, { "mac1", 16 }, { "mac2", 16 },
    },
    [2] = {
        { "receiver", 4 }, { "sender", 4 }, { "ephemeral", 32 }, { "payload", 15 },
        { "payload_tag", 16 }, { "mac1", 16 }, { "mac2", 16 },
    },
    [3] = { { "receiver", 4 }, { "nonce", 24 }, { "cookie", 16 }, { "cookie_tag", 16 } },
}

function plait.dissector(tvb, pinfo, root)
    if tvb:len() < 1 then return 0 end
    local first = tvb(0, 1):uint()
    local kind = band(first, 15)
    if rshift(first, 4) ~= 1 or not KINDS[kind] then return 0 end
    pinfo.cols.protocol = "plait"
    pinfo.cols.info = KINDS[kind]
    local tree = root:add(plait, tvb())
    tree:append_text(", " .. KINDS[kind])
    tree:add(f.version, tvb(0, 1))
    tree:add(f.type, tvb(0, 1))
    local read = reader(tvb, tree)
    read.at = 1
    if HANDSHAKES[kind] then
        local whole = read:all(HANDSHAKES[kind])
        if whole and kind == 2 and tvb(5, 4):uint() == 0 then
            pinfo.cols.info = "Response: refusal, the timestamp is stale"
        end
        read:rest_is_unknown()
        if not whole then tree:add_proto_expert_info(e.malformed) end
    else
        sealed(read, pinfo, tree, root, kind)
    end
    return tvb:len()
end

local ports, registered = DissectorTable.get("udp.port"), nil
local function register()
    if registered then ports:remove(registered, plait) end
    registered = plait.prefs.port
    ports:add(registered, plait)
end

function plait.prefs_changed()
    forget_log()
    register()
end

register()
