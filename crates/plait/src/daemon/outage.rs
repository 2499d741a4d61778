//! What becomes of the host's traffic while the bond cannot carry it: `when_down`.

mod block;
mod bypass;
mod watch;

use std::time::Duration;

use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::endpoint::Endpoint;
use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

use super::state::StateFile;
use crate::config::{Config, WhenDown};
pub(crate) use block::{Block, blocks_in_force, can_block, lift, table_name as block_table};
use bypass::Bypass;
pub(super) use bypass::Host;
pub(crate) use bypass::can_bypass;
pub(super) use watch::Watch;

/// What is in force, and what it does now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct OutageStatus {
    /// The word of the configuration.
    pub(crate) when_down: String,
    /// Whether traffic goes past the bond now.
    pub(crate) bypassing: bool,
    /// Seconds since the bond went down, as far as that is watched.
    pub(crate) down_for_s: Option<u64>,
    /// The same in words.
    pub(crate) text: String,
}

/// What is in force.
#[derive(Debug)]
pub(super) struct Outage {
    mode: WhenDown,
    bypass: Option<Bypass>,
    block: Option<Block>,
}

impl Outage {
    /// Nothing yet but the kill switch, if there is one.
    pub(super) fn new(block: Option<Block>) -> Self {
        let mode = if block.is_some() { WhenDown::Block } else { WhenDown::Hold };
        Self { mode, bypass: None, block }
    }

    /// Undoes what an earlier run left, and begins.
    pub(super) fn set_up(&mut self, config: &Config, peers: &[PeerConfig], file: &mut StateFile) {
        bypass::undo(file);
        if self.block.is_none() {
            block::lift_leftover(file);
        }
        self.follow(Instant::ZERO, config, peers, file);
    }

    /// Everything is set up, and the gateway runs.
    pub(super) fn runs(&mut self) {
        if let Some(block) = &mut self.block {
            block.runs();
        }
    }

    /// Another configuration, or other addresses of peers.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        config: &Config,
        peers: &[PeerConfig],
        file: &mut StateFile,
    ) {
        self.mode = config.gateway.when_down;
        self.follow_links(now, config);
        if self.mode != WhenDown::Bypass {
            if self.bypass.take().is_some() {
                bypass::undo(file);
            }
        } else if let Some(bypass) = &mut self.bypass {
            bypass.follow(now, peers, file);
        } else {
            match Bypass::new(now, &config.gateway.tun, peers, file) {
                Ok(bypass) => self.bypass = Some(bypass),
                Err(error) => log::error!("when_down: {error}: {}", error.source),
            }
        }
    }

    /// Links came, went or changed; with them the host's name servers may have.
    pub(super) fn follow_links(&mut self, now: Instant, config: &Config) {
        if let Some(block) = &mut self.block {
            block.follow(config);
        }
        self.wake(now);
    }

    /// The prefixes of these that lead into the bond now.
    pub(super) fn led(&self, prefixes: Vec<Prefix>) -> Vec<Prefix> {
        match &self.bypass {
            Some(bypass) => bypass.led(prefixes),
            None => prefixes,
        }
    }

    /// Something happened to a bond.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Some(bypass) = &mut self.bypass {
            bypass.wake(now);
        }
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.bypass.as_ref().map(Bypass::due_at)
    }

    /// Does what is due.
    pub(super) fn run_due(&mut self, now: Instant, endpoint: &mut Endpoint, host: Host<'_>) {
        if let Some(bypass) = self.bypass.as_mut().filter(|bypass| bypass.due_at() <= now) {
            bypass.run_due(now, endpoint, host);
        }
    }

    /// What is in force, and what it does now.
    pub(super) fn status(&self, now: Instant) -> OutageStatus {
        let down = self.bypass.as_ref().and_then(|bypass| bypass.now(now));
        let text = match (self.mode, &down) {
            (WhenDown::Hold, _) => "the routes stay: traffic waits for the bond".to_owned(),
            (WhenDown::Block, _) => "nothing leaves outside the bond".to_owned(),
            (WhenDown::Bypass, None) => "the bond carries the traffic".to_owned(),
            (WhenDown::Bypass, Some((_, ways))) => {
                format!("the bond is down: traffic goes past it, {}", ways.join(", "))
            }
        };
        OutageStatus {
            when_down: self.mode.word().to_owned(),
            bypassing: down.is_some(),
            down_for_s: down.map(|(time, _): (Duration, _)| time.as_secs()),
            text,
        }
    }

    /// The gateway ends as it was asked to.
    pub(super) fn end(&mut self) {
        if let Some(block) = &mut self.block {
            block.end();
        }
    }

    /// Leaves the host as it was found, except for a kill switch that is to stay.
    pub(super) fn undo(&mut self, file: &mut StateFile) {
        bypass::undo(file);
        if let Some(block) = self.block.take() {
            if !block.outlives() {
                file.state.block_table = None;
                file.save();
            }
            drop(block);
        }
    }
}
