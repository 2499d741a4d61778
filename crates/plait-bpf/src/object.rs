//! Compiled programs, as the build made them, opened and loaded.

use std::fmt;
use std::sync::Mutex;

use libbpf_rs::{MapType, Object, ObjectBuilder, OpenObject, PrintLevel, set_print};

use crate::controller::Controller;
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

const WHITEHAUL: Compiled = compiled!("cc_whitehaul");
const EDINBURGH: Compiled = compiled!("cc_edinburgh");
const LIA: Compiled = compiled!("cc_lia");
const OLIA: Compiled = compiled!("cc_olia");
const BALIA: Compiled = compiled!("cc_balia");
const ILLINOIS: Compiled = compiled!("cc_illinois");
/// Gives the sockets of a cgroup their controllers.
pub const CHOOSE: Compiled = compiled!("cc_choose");

/// The last lines that libbpf said.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const SAID_LINES_MAX: usize = 200;

/// libbpf prints by itself; what it says belongs into the error.
fn note(_level: PrintLevel, line: String) {
    let mut said = SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let room = SAID_LINES_MAX.saturating_sub(said.len());
    said.extend(line.lines().rev().take(room).map(str::to_owned));
}

/// The line that tells most: the verifier's word before its statistics.
fn gist() -> String {
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    let tells = |line: &&String| !line.starts_with("processed ") && !line.starts_with("-- ");
    said.iter().find(tells).cloned().unwrap_or_default()
}

/// Tells what the senders of TCP do.
pub const TRACE: Compiled = compiled!("trace");

impl Compiled {
    /// The program of a controller.
    pub const fn of(controller: Controller) -> &'static Self {
        match controller {
            Controller::Whitehaul => &WHITEHAUL,
            Controller::Edinburgh => &EDINBURGH,
            Controller::Lia => &LIA,
            Controller::Olia => &OLIA,
            Controller::Balia => &BALIA,
            Controller::Illinois => &ILLINOIS,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Reads it; nothing is in the kernel yet.
    ///
    /// # Errors
    /// When libbpf cannot read it.
    pub fn open(&self) -> Result<OpenObject, Error> {
        set_print(Some((PrintLevel::Warn, note)));
        let mut builder = ObjectBuilder::default();
        let opened = builder.name(self.name).and_then(|it| it.open_memory(&self.bytes.0));
        opened.map_err(|cause| LoadError::new(self.name, &gist(), cause).into())
    }

    /// Loads it into the kernel as it is. It is gone when the object is, unless something holds it.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn load(&self) -> Result<Object, Error> {
        self.load_opened(self.open()?)
    }

    /// Loads a controller's program for a kernel that has no links for it.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub(crate) fn load_without_link(&self) -> Result<Object, Error> {
        let mut object = self.open()?;
        for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            // Its section asks for `BPF_F_LINK`, which the kernel does not know.
            map.set_map_flags(0).map_err(|cause| LoadError::new(self.name, &gist(), cause))?;
        }
        self.load_opened(object)
    }

    fn load_opened(&self, object: OpenObject) -> Result<Object, Error> {
        object.load().map_err(|cause| LoadError::new(self.name, &gist(), cause).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_has_its_program() {
        for controller in Controller::ALL {
            let object = Compiled::of(controller).open().expect("an object that clang made");
            let has_it = object.maps().any(|map| map.name() == controller.kernel_name());
            assert!(has_it, "{controller}");
        }
    }

    #[test]
    fn what_was_compiled_is_read() {
        let object = CHOOSE.open().expect("an object that clang made");
        let names: Vec<_> = object.progs().map(|program| program.name().to_owned()).collect();
        assert_eq!(names, ["plait_choose"]);
    }
}
