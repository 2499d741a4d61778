//! Compiled programs, as the build made them, opened and loaded.

use std::fmt;

use libbpf_rs::{Object, ObjectBuilder, OpenObject};

use crate::error::{Error, LoadError};

/// ELF is read in place, so it stands as its numbers need it.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// A program as `bpf/NAME.bpf.c` was compiled.
#[derive(Clone, Copy)]
pub struct Compiled {
    name: &'static str,
    bytes: &'static Aligned<[u8]>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The program of `bpf/$name.bpf.c`.
macro_rules! compiled {
    ($name:literal) => {
        Compiled {
            name: $name,
            bytes: &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))),
        }
    };
}

/// Counts acknowledgements: tells whether `tp_btf` works on this machine.
pub const PROBE: Compiled = compiled!("probe");

/// Tells what the senders of TCP do.
pub const TRACE: Compiled = compiled!("trace");

impl Compiled {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Reads it; nothing is in the kernel yet.
    ///
    /// # Errors
    /// When libbpf cannot read it.
    pub fn open(&self) -> Result<OpenObject, Error> {
        let mut builder = ObjectBuilder::default();
        let opened = builder.name(self.name).and_then(|it| it.open_memory(&self.bytes.0));
        opened.map_err(|cause| LoadError::new(self.name, cause).into())
    }

    /// Loads it into the kernel as it is.
    ///
    /// # Errors
    /// Names what the machine lacks.
    pub fn load(&self) -> Result<Object, Error> {
        load(self.name, self.open()?)
    }
}

/// Loads an opened object into the kernel. What the verifier says of it is kept for the error.
///
/// # Errors
/// Names what the machine lacks.
pub fn load(name: &'static str, object: OpenObject) -> Result<Object, Error> {
    object.load().map_err(|cause| LoadError::new(name, cause).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compiled_is_read() {
        let object = PROBE.open().expect("an object that clang made");
        let names: Vec<_> = object.progs().map(|program| program.name().to_owned()).collect();
        assert_eq!(names, ["plait_probe"]);
    }
}
