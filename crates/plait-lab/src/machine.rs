//! The machine on which figures were measured.

use std::fs;

use serde::{Deserialize, Serialize};

mod awake;
mod watch;

pub(crate) use awake::keep_awake;
pub(crate) use watch::{CpuTime, Interruption, Watch};

/// The machine under the lab.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// How the lab was compiled; empty in records from before it was noted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) build: String,
}

impl Machine {
    pub(crate) fn detect() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: cpu_model(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            build: env!("PLAIT_BUILD").to_owned(),
        }
    }

    /// For a cell of a table.
    pub(crate) fn short(&self) -> String {
        let Self { cpu, cores, kernel, .. } = self;
        format!("{cpu}, {cores} cores, Linux {kernel}")
    }

    pub(crate) fn sentence(&self) -> String {
        self.sentence_of("Measured")
    }

    /// A sentence with the verb for what was done: measured, computed, and so on.
    pub(crate) fn sentence_of(&self, verb: &str) -> String {
        let Self { cpu, cores, kernel, build } = self;
        let build = if build.is_empty() { "unknown" } else { build };
        format!("{verb} on {cpu} ({cores} cores), Linux {kernel}; build: {build}.")
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Programs that ran or wanted to, on average over the last minute; as in proc_loadavg(5), empty
/// where the kernel does not say.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::cpu_model;

    #[test]
    fn cpu_is_named_by_its_model() {
        let text = "processor\t: 0\nmodel name\t: Example CPU @ 2.00GHz\nflags\t: aes\n";
        assert_eq!(cpu_model(text).as_deref(), Some("Example CPU @ 2.00GHz"));
        assert_eq!(cpu_model("processor : 0\n"), None);
    }
}
