//! What the other end needs to set itself up, as one word.
//!
//! The word is a mark of its form followed by JSON in base64 for URLs (RFC 4648 §5). It holds the
//! other end's private key.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plait_proto::session::{PrivateKey, PublicKey};
use plait_toml::value::{Cidr, Endpoint};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::end::{End, Role};
use crate::advice::Advised;
use crate::config::parse_key;

/// The mark of this form; another form gets another number.
const MARK: &str = "plait1.";
/// The longest invitation: some dozens of prefixes.
const BYTES_MAX: usize = 4096;
const REMEDY: &str = "copy the whole command that `plait setup` printed at the other end";

/// An invitation to be one end of a bond.
#[derive(Debug)]
pub(crate) struct Invitation {
    /// The end that the invited machine becomes; its links are not known yet.
    pub(crate) end: End,
}

/// The fields, by short names: the word is also shown as a QR code.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    /// Whether the invited end is the provider's.
    provider: bool,
    /// Its private key.
    key: Zeroizing<String>,
    /// Its inner addresses.
    own: Vec<String>,
    /// The other end's public key.
    peer: String,
    /// Where the provider's end listens.
    at: String,
    /// More ports on which it listens there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<u16>,
    /// Networks behind the customer's end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lan: Vec<String>,
    /// The customer's inner addresses.
    customer: Vec<String>,
    /// Whether the provider's end hides the customer behind its own addresses.
    nat: bool,
}

impl Invitation {
    /// The invitation as one word.
    pub(crate) fn to_word(&self) -> Zeroizing<String> {
        let end = &self.end;
        let texts = |cidrs: &[Cidr]| cidrs.iter().map(Cidr::to_string).collect();
        let word = Word {
            provider: end.role == Role::Provider,
            key: end.private_key.to_base64(),
            own: texts(&end.addresses),
            peer: end.peer.to_string(),
            at: end.endpoint.to_string(),
            ports: end.more_ports.clone(),
            lan: texts(&end.lan),
            customer: texts(&end.customer),
            nat: end.nat,
        };
        let json = serde_json::to_vec(&word).expect("texts and lists of texts become JSON");
        let json = Zeroizing::new(json);
        Zeroizing::new(format!("{MARK}{}", URL_SAFE_NO_PAD.encode(&*json)))
    }

    /// Reads a word; white space around it does not matter.
    ///
    /// # Errors
    /// It is no invitation, of another form, or cut.
    pub(crate) fn parse(word: &str) -> Result<Self, Advised> {
        let word = word.trim();
        let refuse = |why: &str| Advised::new(format!("this is no invitation: {why}"), REMEDY);
        let body = match word.strip_prefix(MARK) {
            Some(body) => body,
            None if word.starts_with("plait") => {
                let help = "install the same version of plait at both ends";
                return Err(Advised::new("this invitation is of another version of plait", help));
            }
            None => return Err(refuse(&format!("it does not begin with \"{MARK}\""))),
        };
        if body.len() > BYTES_MAX {
            return Err(refuse("it is too long"));
        }
        let json = URL_SAFE_NO_PAD.decode(body).map(Zeroizing::new);
        let json = json.map_err(|_| refuse("a letter is wrong, or its end is missing"))?;
        let fields: Word =
            serde_json::from_slice(&json).map_err(|_| refuse("its end is missing"))?;
        fields.end().map(|end| Self { end }).ok_or_else(|| refuse("a value in it is wrong"))
    }
}

impl Word {
    fn end(&self) -> Option<End> {
        let cidrs = |texts: &[String]| {
            texts.iter().map(|text| Cidr::prefix(text).ok()).collect::<Option<Vec<_>>>()
        };
        let own = self.own.iter().map(|text| Cidr::of_device(text).ok());
        Some(End {
            role: if self.provider { Role::Provider } else { Role::Customer },
            private_key: PrivateKey::from_bytes(*parse_key(&self.key).ok()?),
            addresses: own.collect::<Option<Vec<_>>>()?,
            peer: PublicKey::from_bytes(*parse_key(&self.peer).ok()?),
            endpoint: Endpoint::parse(&self.at).ok()?,
            more_ports: self.ports.clone(),
            lan: cidrs(&self.lan)?,
            customer: cidrs(&self.customer)?,
            links: Vec::new(),
            macs: BTreeMap::new(),
            nat: self.nat,
            user: None,
            router: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::end::testing;

    #[test]
    fn an_invitation_survives_its_word() {
        let mut invitation = testing::pair().1;
        invitation.end.more_ports = vec![443, 4500];
        let word = invitation.to_word();
        assert!(word.len() < 700, "{}: a QR code of it must fit a terminal", word.len());
        let read = Invitation::parse(&format!(" {}\n", *word)).unwrap();
        assert_eq!(read.end.text("plait0"), invitation.end.text("plait0"));
        assert!(read.end.nat);
        assert_eq!(read.end.private_key.to_base64(), invitation.end.private_key.to_base64());
    }

    /// A provider's end that joined hid customers with public addresses.
    #[test]
    fn regression_an_invitation_says_whether_the_customer_is_hidden() {
        let mut invitation = testing::pair().1;
        invitation.end.nat = false;
        assert!(!Invitation::parse(&invitation.to_word()).unwrap().end.nat);
    }

    #[test]
    fn what_is_no_invitation_is_told() {
        let word = testing::pair().1.to_word();
        let error = |text: &str| Invitation::parse(text).unwrap_err().to_string();
        assert!(error("hello").contains("does not begin with \"plait1.\""));
        assert!(error("plait2.abc").contains("another version"));
        assert!(error(&format!("plait1.{}", "a".repeat(5000))).contains("too long"));
        for cut in 8..word.len() {
            assert!(error(&word[..cut]).starts_with("this is no invitation"), "{cut}");
        }
        let other = |from: &str, to: &str| {
            let json = URL_SAFE_NO_PAD.decode(&word[7..]).unwrap();
            let json = String::from_utf8(json).unwrap().replace(from, to);
            format!("{MARK}{}", URL_SAFE_NO_PAD.encode(json))
        };
        assert!(error(&other("\"at\":\"", "\"at\":\"x y")).contains("a value in it is wrong"));
        assert!(error(&other("\"at\":", "\"to\":")).contains("no invitation"));
    }
}
