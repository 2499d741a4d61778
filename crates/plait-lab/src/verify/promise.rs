//! promise.*: the bond is never slower than its best link.

pub(super) mod measure;
