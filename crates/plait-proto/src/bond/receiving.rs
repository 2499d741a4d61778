//! The egress of a bond, and what it has due and to deliver: both are known until it changes, so
//! that a packet on its way out costs no look at the way in.

use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use crate::egress::Egress;
use crate::time::{Instant, earlier};

/// An egress whose owner may not have changed it since it was last asked.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Receiving {
    /// When it has something due, if that is known.
    due: Cell<Option<Option<Instant>>>,
    /// It was asked for packets and had none.
    is_drained: bool,
    egress: Egress,
}

impl Receiving {
    pub(super) const fn new(egress: Egress) -> Self {
        Self { due: Cell::new(None), is_drained: false, egress }
    }

    /// When it, its feedback or its sessions have something due.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.due.get().unwrap_or_else(|| self.find_due());
        debug_assert_eq!(due, self.find_due(), "whatever changes what is due makes it unknown");
        self.due.set(Some(due));
        due
    }

    #[inline]
    fn find_due(&self) -> Option<Instant> {
        let own = earlier(self.egress.poll_timeout(), self.egress.poll_feedback_timeout());
        earlier(own, self.egress.sessions_expire_at())
    }

    #[inline]
    pub(super) fn has_delivery(&self) -> bool {
        debug_assert!(!self.is_drained || !self.egress.has_delivery(), "it was drained");
        !self.is_drained && self.egress.has_delivery()
    }

    /// The next packet for the host. What is due stays as it is.
    #[inline]
    pub(super) fn poll_deliver(&mut self) -> Option<&[u8]> {
        if self.is_drained {
            return None;
        }
        self.is_drained = !self.egress.has_delivery();
        self.egress.poll_deliver()
    }
}

impl Deref for Receiving {
    type Target = Egress;

    fn deref(&self) -> &Egress {
        &self.egress
    }
}

impl DerefMut for Receiving {
    #[inline]
    fn deref_mut(&mut self) -> &mut Egress {
        self.due.set(None);
        self.is_drained = false;
        &mut self.egress
    }
}
