//! Keeps processors from halting while links run in real time.
//!
//! An idle processor halts. On a virtual machine the host then runs something else on it, and
//! returns it milliseconds after a packet has arrived. Power-management QoS lets a program ask the
//! kernel to poll instead (`Documentation/power/pm_qos_interface.rst`), which needs the right to
//! write to one file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

const FILE: &str = "/dev/cpu_dma_latency";

/// Keeps all processors awake until this process ends. Without the right, links are late, as their
/// [`Lateness`](crate::emulator::Lateness) shows.
pub(crate) fn keep_awake() {
    static HELD: OnceLock<Option<File>> = OnceLock::new();
    HELD.get_or_init(|| ask(Path::new(FILE)).ok());
}

/// Asks for zero wake-up latency, for as long as the file is open.
fn ask(file: &Path) -> io::Result<File> {
    let mut file = File::options().write(true).open(file)?;
    file.write_all(&0i32.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_for_no_latency_and_does_without() {
        let scratch = crate::scratch::Scratch::in_memory("awake").unwrap();
        let file = scratch.path().join("latency");
        assert!(ask(&file).is_err(), "it makes no such file");
        std::fs::write(&file, "").unwrap();
        drop(ask(&file).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), [0; 4]);
    }
}
