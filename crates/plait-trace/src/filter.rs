//! Which connections are looked at.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// What a connection must have, of each kind that is asked for at all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// One of these ports, at either end.
    pub ports: Vec<u16>,
    /// An address in one of these networks, at either end.
    pub networks: Vec<IpNet>,
    /// One of these MPTCP tokens, of either end.
    pub tokens: Vec<u32>,
}

impl Filter {
    /// Whether ports and addresses fit.
    pub fn takes_ends(&self, one: SocketAddr, other: SocketAddr) -> bool {
        let either = |fits: &dyn Fn(SocketAddr) -> bool| fits(one) || fits(other);
        let is_in = |address: IpAddr| {
            self.networks.iter().any(|network| network.contains(&address.to_canonical()))
        };
        (self.ports.is_empty() || either(&|end| self.ports.contains(&end.port())))
            && (self.networks.is_empty() || either(&|end| is_in(end.ip())))
    }

    /// Whether one of a connection's tokens fits. A connection without tokens fits only where none
    /// is asked for.
    pub fn takes_tokens(&self, tokens: &[u32]) -> bool {
        self.tokens.is_empty() || tokens.iter().any(|token| self.tokens.contains(token))
    }
}

/// Reads a token as it is printed: hexadecimal, with or without `0x`.
///
/// # Errors
/// What was expected.
pub fn parse_token(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    token.ok_or_else(|| "expected an MPTCP token: up to eight hexadecimal digits".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_asked_for_must_fit() {
        let end = |text: &str| text.parse().unwrap();
        let (one, other) = (end("10.0.0.1:5000"), end("[fd00::2]:80"));
        assert!(Filter::default().takes_ends(one, other) && Filter::default().takes_tokens(&[]));
        let mut filter = Filter { ports: vec![80, 443], ..Filter::default() };
        assert!(filter.takes_ends(one, other) && !filter.takes_ends(one, end("10.0.0.1:81")));
        filter.networks = vec!["10.0.0.0/24".parse().unwrap()];
        assert!(filter.takes_ends(one, other) && !filter.takes_ends(other, other));
        assert!(filter.takes_ends(end("[::ffff:10.0.0.9]:80"), other), "IPv4 in IPv6");
        filter.tokens = vec![7];
        assert!(filter.takes_tokens(&[3, 7]) && !filter.takes_tokens(&[3]));
        assert!(!filter.takes_tokens(&[]));
    }

    #[test]
    fn tokens_are_hexadecimal() {
        assert_eq!(parse_token("0xA1b2c3d4"), Ok(0xa1b2_c3d4));
        assert_eq!(parse_token("7"), Ok(7));
        for wrong in ["", "0x", "+7", "a1b2c3d4e", "g"] {
            assert!(parse_token(wrong).is_err(), "{wrong}");
        }
    }
}
