//! Configurations of steering nodes that must be refused, with the exact words. The file is called
//! `gw.toml`.

use crate::cases::Case;

macro_rules! case {
    ($name:literal, $toml:literal, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case { name: $name, toml: $toml, errors: &[$(($problem, $help)),+] }
    };
    ($name:literal, $line:literal in node, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case {
            name: $name,
            // The line in question is the second.
            toml: concat!(
                "[node]\n",
                $line,
                "\n[[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\n",
                "[[client.attachment]]\nname = \"lte\"\n"
            ),
            errors: &[$(($problem, $help)),+],
        }
    };
    ($name:literal, $tail:literal after good, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case {
            name: $name,
            // Six lines.
            toml: concat!(
                "[node]\n[[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\n",
                "[[client.attachment]]\nname = \"lte\"\n",
                $tail
            ),
            errors: &[$(($problem, $help)),+],
        }
    };
}

pub(crate) const NODES: &[Case] = &[
    // The file and its words.
    case!(
        "not TOML",
        "[node]\npolicy = \n",
        [
            "gw.toml:2: not TOML: string values must be quoted, expected literal string",
            "text goes in double quotes, lists in square brackets"
        ]
    ),
    case!(
        "no node",
        "[[client]]\nname = \"phone\"\naddress = \"10.1.0.1\"\n",
        ["gw.toml:1: [node]: missing", "add `[node]`"]
    ),
    case!(
        "a misspelt section", "[[clients]]\n" after good,
        ["gw.toml:7: clients: unknown section", "did you mean `client`?"]
    ),
    case!(
        "a misspelt option", "polcy = \"fixed\"" in node,
        ["gw.toml:2: [node] polcy: unknown option", "did you mean `policy`?"]
    ),
    case!(
        "a misspelt option of an attachment", "adress = \"10.2.0.1\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]] adress: unknown option",
            "did you mean `address`?"
        ]
    ),
    case!(
        "a misspelt option of DIDA", "[dida]\nholdmax_ms = 3\n" after good,
        ["gw.toml:8: [dida] holdmax_ms: unknown option", "did you mean `hold_max_ms`?"]
    ),
    // [node].
    case!(
        "a misspelt policy", "policy = \"fixd\"" in node,
        ["gw.toml:2: [node] policy: \"fixd\" is not one of the choices", "did you mean \"fixed\"?"]
    ),
    case!(
        "a scheduler that is no policy", "policy = \"redundant\"" in node,
        [
            "gw.toml:2: [node] policy: \"redundant\" is no policy of a steering node: a client has \
             nobody that removes the copies",
            "choose one of: fixed, inverse-rtt, round-robin, min-rtt, cheapest-first, capacity"
        ]
    ),
    case!(
        "a granularity", "per = \"packets\"" in node,
        ["gw.toml:2: [node] per: \"packets\" is not one of the choices", "did you mean \"packet\"?"]
    ),
    case!(
        "a number of packets", "first_packets = -1" in node,
        [
            "gw.toml:2: [node] first_packets: -1 is out of range",
            "write a number from 0 to 1000000 packets"
        ]
    ),
    case!(
        "a probe's interval", "probe_interval_ms = 1" in node,
        [
            "gw.toml:2: [node] probe_interval_ms: 1 is out of range",
            "write a number from 10 to 60000 milliseconds"
        ]
    ),
    case!(
        "an interval of no probes",
        "probe = false\nprobe_interval_ms = 100\npolicy = \"fixed\"" in node,
        [
            "gw.toml:3: [node] probe_interval_ms: has no effect with `probe = false`",
            "remove it; it belongs to a node that probes"
        ]
    ),
    case!(
        "a policy that needs probes", "probe = false" in node,
        [
            "gw.toml:1: [node]: the policy `inverse-rtt` needs round-trip times, so `probe` must \
             not be off",
            "correct the options that it names"
        ]
    ),
    case!(
        "a table of the kernel's", "table = 254" in node,
        ["gw.toml:2: [node] table: 254 is out of range", "write a number from 256 to 32000"]
    ),
    case!(
        "a device's name", "tun = \"steer/0\"" in node,
        [
            "gw.toml:2: [node] tun: \"steer/0\" is not a name for an interface",
            "use letters, digits, `-`, `_` and `.`; no space and no slash"
        ]
    ),
    case!(
        "an MTU too small for IPv6",
        "[node]\nmtu = 1000\n[[client]]\nname = \"phone\"\naddress6 = \"fd01::1\"\n\
         [[client.attachment]]\nname = \"lte\"\n",
        [
            "gw.toml:1: [node] mtu: 1000 bytes are too few for IPv6",
            "set mtu to 1280 or more, or remove the IPv6 addresses"
        ]
    ),
    // [[client]].
    case!(
        "no client",
        "[node]\n",
        [
            "gw.toml:1: [[client]]: no client to steer for",
            "add a [[client]] with `name`, `address` and its [[client.attachment]]s"
        ]
    ),
    case!(
        "a client without anything", "[[client]]\n" after good,
        ["gw.toml:7: [[client]] name: missing", "add `name = \"phone\"`"]
    ),
    case!(
        "a client without addresses and attachments", "[[client]]\nname = \"pad\"\n" after good,
        [
            "gw.toml:7: [[client]]: the client has no primary address",
            "add `address = \"10.1.0.1\"`, `address6 = \"2001:db8::1\"` or both"
        ],
        [
            "gw.toml:7: [[client]]: the client has no attachment",
            "add a [[client.attachment]] for each way to it, the primary first"
        ]
    ),
    case!(
        "two clients of one name",
        "[[client]]\nname = \"phone\"\naddress = \"10.1.0.2\"\n\
         [[client.attachment]]\nname = \"lte\"\n" after good,
        [
            "gw.toml:7: [[client]] name: the client of line 2 is called \"phone\" too",
            "give each client its own `name`"
        ]
    ),
    case!(
        "an address of the other family",
        "[[client]]\nname = \"pad\"\naddress = \"fd01::1\"\n" after good,
        [
            "gw.toml:9: [[client]] address: \"fd01::1\" is not an IPv4 address",
            "write it as `address6`"
        ]
    ),
    case!(
        "an address for everybody",
        "[[client]]\nname = \"pad\"\naddress = \"224.0.0.1\"\n\
         [[client.attachment]]\nname = \"lte\"\n" after good,
        [
            "gw.toml:7: [[client]] address: 224.0.0.1 is not the address of one host",
            "write the client's own address"
        ]
    ),
    // [[client.attachment]].
    case!(
        "an address of the primary's own", "address = \"10.2.0.1\"\n" after good,
        [
            "gw.toml:5: [[client.attachment]] address: the first attachment is the primary, whose \
             packets keep the client's own address",
            "remove it here; the address stands in [[client]], and another attachment comes after \
             the primary"
        ]
    ),
    case!(
        "an attachment without an address", "[[client.attachment]]\nname = \"wifi\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]]: the client's address on this attachment is missing",
            "add `address = \"10.2.0.1\"`: the client's own address there, also inside an IPsec \
             tunnel"
        ]
    ),
    case!(
        "two attachments of one name and one address",
        "[[client.attachment]]\nname = \"lte\"\naddress = \"10.1.0.1\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]] name: the attachment of line 5 is called \"lte\" too",
            "give each attachment of a client its own `name`"
        ],
        [
            "gw.toml:7: [[client.attachment]] address: 10.1.0.1 is used in line 2 too",
            "use each address once"
        ]
    ),
    case!(
        "a family that the client has not",
        "[[client.attachment]]\nname = \"wifi\"\naddress6 = \"fd02::1\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]] address6: the client has no IPv6 primary address to \
             rewrite to fd02::1",
            "remove it, or give the client a primary address of that family"
        ]
    ),
    case!(
        "a next hop of another family", "gateway = \"fd00::2\"\n" after good,
        [
            "gw.toml:5: [[client.attachment]] gateway: fd00::2 leads to no address of this \
             attachment: there is no IPv6 one",
            "remove it, or give the attachment an address of that family"
        ]
    ),
    case!(
        "two next hops", "gateway = [\"10.4.0.1\",\n  \"10.4.0.2\"]\n" after good,
        [
            "gw.toml:8: [[client.attachment]] gateway: a second one of its family",
            "keep one IPv4 and one IPv6 address at most"
        ]
    ),
    case!(
        "no next hop", "gateway = \"router\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]] gateway: \"router\" is not an IP address",
            "write the next hop as in \"10.4.0.2\""
        ]
    ),
    case!(
        "the node's own device", "interface = \"steer0\"\n" after good,
        [
            "gw.toml:7: [[client.attachment]] interface: steer0 is the node's own TUN device",
            "name the interface that leads to the client"
        ]
    ),
    case!(
        "a weight of zero", "weight = 0\n" after good,
        [
            "gw.toml:7: [[client.attachment]] weight: 0 is out of range",
            "write a number from 1 to 65535"
        ]
    ),
    // [dida].
    case!(
        "a hold that is no policy", "[dida]\nhold = \"optimal\"\n" after good,
        [
            "gw.toml:8: [dida] hold: \"optimal\" is not one of the choices",
            "did you mean \"optimum\"?"
        ]
    ),
    case!(
        "a hold too long", "[dida]\nhold = 70000\n" after good,
        [
            "gw.toml:8: [dida] hold: 70000 is out of range",
            "write a number from 0 to 60000 milliseconds"
        ]
    ),
    case!(
        "a handling of SACK", "[dida]\nsack = \"drop\"\n" after good,
        [
            "gw.toml:8: [dida] sack: \"drop\" is not one of the choices",
            "choose one of: filter, mask, pass"
        ]
    ),
    case!(
        "no flows", "[dida]\nflows_max = 0\n" after good,
        ["gw.toml:8: [dida] flows_max: 0 is out of range", "write a number from 1 to 1000000 flows"]
    ),
];
