//! Plays a clip in headless Chromium on the measuring application's page, and takes its record.

use std::time::{Duration, Instant};

use plait_net::netns::NetNs;
use serde_json::Value;

use super::PlayError;
use super::browser::{Browser, Start};
use super::record::Run;

/// How often the page is asked whether it is done.
pub(crate) const POLL: Duration = Duration::from_millis(250);
/// For the page itself, and for the record's way, beside the clip.
const AROUND: Duration = Duration::from_secs(60);
/// For the page's own bytes over a slow link.
const PAGE_LIMIT: Duration = Duration::from_secs(60);
/// The page's word for a player that adapts.
const ADAPTIVE: &str = "adaptive";

/// Who plays what, and from where.
#[derive(Clone, Debug)]
pub(crate) struct Player<'a> {
    /// The network that the browser is in; the lab's own when none is given.
    pub(crate) netns: Option<&'a NetNs>,
    /// The page, such as `http://10.3.0.2:8090/`.
    pub(crate) url: &'a str,
    /// An id of its catalogue.
    pub(crate) clip: &'a str,
    /// The name of a quality; the player adapts when none is given.
    pub(crate) quality: Option<&'a str>,
    /// `dash` or `hls`.
    pub(crate) protocol: &'a str,
    pub(crate) rebuffering_goal_s: f64,
    pub(crate) buffering_goal_s: f64,
    /// Such as `http://10.3.0.1:3128`.
    pub(crate) proxy: Option<&'a str>,
    /// The run is ended after this, and its record is of a clip that was not played to its end.
    pub(crate) limit: Duration,
}

impl<'a> Player<'a> {
    /// With the page's own settings.
    pub(crate) fn new(url: &'a str, clip: &'a str) -> Self {
        Self {
            netns: None,
            url,
            clip,
            quality: None,
            protocol: "dash",
            rebuffering_goal_s: 2.0,
            buffering_goal_s: 120.0,
            proxy: None,
            limit: Duration::from_secs(66 * 6),
        }
    }

    /// The address of the page with these settings; it may play at once.
    fn address(&self, plays: bool) -> String {
        let Self { url, clip, protocol, rebuffering_goal_s, buffering_goal_s, .. } = self;
        let base = if url.ends_with('/') { url.to_string() } else { format!("{url}/") };
        let quality = encoded(self.quality.unwrap_or(ADAPTIVE));
        let limit_s = self.limit.as_secs();
        format!(
            "{base}?clip={}&quality={quality}&protocol={protocol}&rebuffering={rebuffering_goal_s}\
             &buffering={buffering_goal_s}&limit={limit_s}&autoplay={}",
            encoded(clip),
            u8::from(plays)
        )
    }

    /// A browser that may reach page and proxy.
    fn browser(&self) -> Result<Browser, PlayError> {
        let mut hosts = vec![host_of(self.url)?];
        if let Some(proxy) = self.proxy {
            if is_loopback(&hosts[0]) {
                return Err(PlayError::ProxyForLoopback);
            }
            hosts.push(host_of(proxy)?);
            // The rest of it becomes part of a script.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]/".contains(c);
            if !proxy.starts_with("http://") || !proxy.chars().all(is_plain) {
                return Err(PlayError::Address(proxy.to_owned()));
            }
        }
        let start = Start { netns: self.netns, hosts, proxy: self.proxy, width: 1280, height: 900 };
        Browser::start(&start)
    }
}

/// Plays once, and gives the record that the page has also given to its server.
///
/// # Errors
///
/// [`PlayError`]: no browser, no page, no such clip, or no record in time.
pub(crate) fn play(player: &Player<'_>) -> Result<Run, PlayError> {
    let mut browser = player.browser()?;
    browser.open(&player.address(true))?;
    let mut opened = Opened { browser, limit: player.limit + AROUND, deadline: None };
    loop {
        std::thread::sleep(POLL);
        if let Some(run) = opened.outcome()? {
            return Ok(run);
        }
    }
}

/// A page that stands ready to play, so that neither the browser's start nor the page's own bytes
/// are part of what is measured.
#[derive(Debug)]
pub(crate) struct Opened {
    browser: Browser,
    /// For a record, from the start.
    limit: Duration,
    /// Known when it was first asked whether the clip was played.
    deadline: Option<Instant>,
}

impl Opened {
    /// Opens the page with the player's settings.
    ///
    /// # Errors
    ///
    /// [`PlayError`]: no browser, no page, no such clip.
    pub(crate) fn new(player: &Player<'_>) -> Result<Self, PlayError> {
        let mut browser = player.browser()?;
        browser.open(&player.address(false))?;
        let shown = |id: &str, value: &str| {
            format!("document.querySelector('#{id}')?.value === {}", serde_json::json!(value))
        };
        let quality = shown("quality", player.quality.unwrap_or(ADAPTIVE));
        let goal = shown("buffering", &player.buffering_goal_s.to_string());
        let is_chosen = "document.querySelector('#start')?.disabled === false";
        browser.wait_for(&format!("{quality} && {goal} && {is_chosen}"), PAGE_LIMIT)?;
        Ok(Self { browser, limit: player.limit + AROUND, deadline: None })
    }

    /// Starts the clip.
    ///
    /// # Errors
    ///
    /// [`PlayError`]: the browser or the page broke.
    pub(crate) fn start(&mut self) -> Result<(), PlayError> {
        self.deadline = Some(Instant::now() + self.limit);
        self.browser.evaluate("document.querySelector('#start').click()").map(drop)
    }

    /// The record, once there is one. Ask every [`POLL`].
    ///
    /// # Errors
    ///
    /// [`PlayError`]: the clip cannot be played, or there is no record in time.
    pub(crate) fn outcome(&mut self) -> Result<Option<Run>, PlayError> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.limit);
        let state = self.browser.evaluate("window.plait ? window.plait.state : 'none'")?;
        match state.as_str() {
            Some("kept") => {}
            Some("failed") => {
                let why = self.browser.evaluate("window.plait.error")?;
                return Err(PlayError::Page(why.as_str().unwrap_or("it does not say").into()));
            }
            _ if Instant::now() > deadline => {
                let limit_s = self.limit.as_secs();
                return Err(PlayError::Late { what: "the record".into(), limit_s });
            }
            _ => return Ok(None),
        }
        let record = self.browser.evaluate("JSON.stringify(window.plait.record)")?;
        let Value::String(record) = record else {
            return Err(PlayError::Page("it has no record".into()));
        };
        Ok(Some(Run::parse(record.as_bytes())?))
    }
}

/// The host of an address.
fn host_of(url: &str) -> Result<String, PlayError> {
    let wrong = || PlayError::Address(url.to_owned());
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let is_known = ["http", "https"].contains(&scheme);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| format!("[{host}]")),
        None => authority.split(':').next().map(str::to_owned),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    host.filter(|host| is_known && !host.is_empty() && host.chars().all(is_plain)).ok_or_else(wrong)
}

/// Whether a host is this machine, as far as its name tells.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A text as part of an address's query.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| match byte {
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_run_is_asked_for_in_the_address() {
        let player = Player {
            quality: Some("4K"),
            protocol: "hls",
            limit: Duration::from_secs(90),
            ..Player::new("http://10.3.0.2:8090", "paper-2s")
        };
        assert_eq!(
            player.address(true),
            "http://10.3.0.2:8090/?clip=paper-2s&quality=4K&protocol=hls&rebuffering=2\
             &buffering=120&limit=90&autoplay=1"
        );
        assert_eq!(encoded("a b&c=ä"), "a%20b%26c%3D%C3%A4");
    }

    #[test]
    fn hosts_are_found() {
        for (url, host) in [
            ("http://10.3.0.2:8090/", "10.3.0.2"),
            ("https://a.example/b?c#d", "a.example"),
            ("http://[fd00::1]:80", "[fd00::1]"),
        ] {
            assert_eq!(host_of(url).unwrap(), host);
        }
        for wrong in ["10.3.0.2", "ftp://a", "http://", "http://[::1", "http://a b", "http://a,b"] {
            assert!(host_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_proxy_is_refused_where_chromium_would_pass_it_by() {
        for url in ["http://127.0.0.1:80/", "http://[::1]/", "http://localhost/"] {
            let player = Player { proxy: Some("http://10.3.0.1:3128"), ..Player::new(url, "a") };
            assert!(matches!(play(&player), Err(PlayError::ProxyForLoopback)), "{url}");
        }
        assert!(!is_loopback("10.3.0.2") && !is_loopback("a.example"));
    }

    proptest! {
        #[test]
        fn no_address_adds_a_rule(url in "(http://)?\\PC{0,30}") {
            if let Ok(host) = host_of(&url) {
                prop_assert!(!host.contains([',', ' ']) && !host.is_empty());
            }
        }
    }
}
