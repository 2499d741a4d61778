//! The links that rungs are made of: rate down and up, and round-trip time to the provider's
//! gateway. What they are like in a place of their own stands with the rung.

use crate::ladder::rung::Link;

pub(super) const FIBRE_100: Link = Link::new("fibre", 100, 8);
pub(super) const FIBRE_50: Link = Link::new("fibre", 50, 5);
pub(super) const CABLE_100: Link = Link::new("cable", 100, 18).up(10);
pub(super) const CABLE_60: Link = Link::new("cable", 60, 18).up(6);
pub(super) const FTTC_50: Link = Link::new("fttc", 50, 20).up(10);
pub(super) const FTTC_30: Link = Link::new("fttc", 30, 20).up(6);
pub(super) const DSL_25: Link = Link::new("dsl", 25, 25).up(5);
pub(super) const DSL_16: Link = Link::new("dsl", 16, 30).up(2);
pub(super) const DSL_6: Link = Link::new("dsl", 6, 40).up(1);
pub(super) const DSL_2: Link = Link::new("dsl", 2, 45).up(1);
/// 002's lines.
pub(super) const DSL_64: Link = Link::new("dsl", 64, 13);
pub(super) const LTE_60: Link = Link::new("lte", 60, 30);
pub(super) const LTE_30: Link = Link::new("lte", 30, 45).up(10);
pub(super) const LTE_20: Link = Link::new("lte", 20, 45).up(8);
pub(super) const LTE_10: Link = Link::new("lte", 10, 60).up(5);
pub(super) const LTE_5: Link = Link::new("lte", 5, 60).up(2);
pub(super) const UMTS_4: Link = Link::new("umts", 4, 90).up(1);
pub(super) const FIVE_G_60: Link = Link::new("5g", 60, 25).up(15);
pub(super) const FIVE_G_40: Link = Link::new("5g", 40, 25).up(10);
pub(super) const WIFI_40: Link = Link::new("wifi", 40, 8);
pub(super) const WISP_20: Link = Link::new("wisp", 20, 12);
/// Low satellites.
pub(super) const LEO_60: Link = Link::new("leo", 60, 40).up(10);
pub(super) const LEO_40: Link = Link::new("leo", 40, 40).up(8);
/// Satellites of a middle orbit, or a path over an ocean.
pub(super) const MEO_20: Link = Link::new("meo", 20, 150).up(5);
/// The longest path: a relay at the other end of the world.
pub(super) const FAR_10: Link = Link::new("far", 10, 300).up(5);
