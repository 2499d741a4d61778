//! Header fields that are not passed on.

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};

use crate::refusal::Refusal;

/// Proxies that a request may have passed.
const PROXIES_MAX: usize = 16;

/// Removes the fields that belong to one connection only (RFC 9110, section 7.6.1), those that
/// `Connection` names among them. Whether to upgrade, and to what, is given back.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let upgrade = headers.remove(UPGRADE).filter(|_| named.contains(&UPGRADE));
    for name in named {
        headers.remove(name);
    }
    let known = [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER];
    for name in known.into_iter().chain([TRANSFER_ENCODING]) {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
    upgrade
}

/// Adds this proxy to those that a message has passed (RFC 9110, section 7.6.3).
///
/// # Errors
/// It has passed this one already, or too many.
pub(super) fn pass(headers: &mut HeaderMap, pseudonym: &str) -> Result<(), Refusal> {
    let passed = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
    let passed: Vec<&str> = passed.flat_map(|value| value.split(',')).collect();
    let is_this = |entry: &&str| entry.split_whitespace().nth(1) == Some(pseudonym);
    if passed.len() >= PROXIES_MAX || passed.iter().any(is_this) {
        return Err(Refusal::Loop);
    }
    let own = HeaderValue::try_from(format!("1.1 {pseudonym}"));
    headers.append(VIA, own.map_err(|_| Refusal::Malformed)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = all
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn what_belongs_to_one_connection_goes_no_further() {
        let mut given = headers(&[
            ("connection", "close, x-mine"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("x-mine", "1"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("keep-alive", "timeout=5"),
            ("accept", "*/*"),
        ]);
        assert_eq!(remove_hop_by_hop(&mut given), Some(HeaderValue::from_static("websocket")));
        assert_eq!(given, headers(&[("accept", "*/*")]));
        let mut given = headers(&[("upgrade", "h2c")]);
        assert_eq!(remove_hop_by_hop(&mut given), None);
    }

    #[test]
    fn a_request_that_comes_back_is_known() {
        let mut given = headers(&[("via", "1.0 first, 1.1 second")]);
        assert_eq!(pass(&mut given, "third"), Ok(()));
        assert_eq!(given.get_all(VIA).iter().count(), 2);
        for known in ["first", "second", "third"] {
            assert_eq!(pass(&mut given, known), Err(Refusal::Loop), "{known}");
        }
        let mut long = HeaderMap::new();
        for _ in 0..PROXIES_MAX {
            long.append(VIA, HeaderValue::from_static("1.1 other"));
        }
        assert_eq!(pass(&mut long, "this"), Err(Refusal::Loop));
    }
}
