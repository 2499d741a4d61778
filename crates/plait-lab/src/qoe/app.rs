//! The page's files, as scripts/qoe-app has built them into the binary.

include!(concat!(env!("OUT_DIR"), "/qoe_app.rs"));

/// Whether the lab was built with the page.
pub(crate) fn is_there() -> bool {
    FILES.iter().any(|(name, _)| *name == "index.html")
}

/// The file of this name.
pub(crate) fn file(name: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}
