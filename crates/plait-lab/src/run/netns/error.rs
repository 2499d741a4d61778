//! Why the namespaces cannot run a scenario, or why their results are invalid.

/// Something in a scenario that the kernel or the lab lacks, or a machine that did not keep up.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub(super) enum NetnsError {
    /// The scenario is for other back-ends.
    #[error(
        "{name}: the scenario is meant for the simulator alone; choose --on sim, or add \
         \"netns\" to its backends"
    )]
    NotMeant { name: String },
    /// Pages over QUIC, which only the simulator has.
    #[error(
        "app.{app}: pages over QUIC are not on netns yet; take another recovery, or choose --on \
         sim"
    )]
    QuicPages { app: String },
    /// Something that a browser does not do as a scenario wants it.
    #[error("app.{app}: {what} on netns, where Chromium plays; {help}, or choose --on sim")]
    Video { app: String, what: String, help: &'static str },
    /// Something that only the simulator has so far.
    #[error("{what}: not on netns yet; take it out, or choose --on sim")]
    NotYet { what: String },
    /// Clients that reorder packets below IP.
    #[error(
        "[steer.client]: clients on netns are plain hosts, which deliver packets as they come; \
         take it out, or choose --on sim"
    )]
    Reordering,
    /// A load over an attachment of the steering node, besides loads through the node.
    #[error(
        "app.{app}: via = \"{link}\": what comes over an attachment is for the client's primary \
         address, which the node steers; give all applications via = \"steer\", or all a link, or \
         choose --on sim"
    )]
    Beside { app: String, link: String },
    /// A TCP sender that paces.
    #[error("app.{app}: hosts on netns do not pace; write paced = false, or choose --on sim")]
    Paced { app: String },
    /// QUIC over a connection of several TCP subflows.
    #[error(
        "app.{app}: QUIC does not run over the kernel's MPTCP, which carries TCP; choose another \
         `via`, or a recovery of TCP"
    )]
    QuicOverMptcp { app: String },
    /// An option of MPTCP that the kernel does not have.
    #[error(
        "app.{app}: {option} = {value}: the kernel's MPTCP has one scheduler, \"shortest-flush\", \
         one subflow on every link, the first by name as the primary, no backup here, no penalty, \
         and a send buffer of its own; take the option out, or choose --on sim"
    )]
    Mptcp { app: String, option: &'static str, value: String },
    /// A congestion controller that the lab's QUIC does not have.
    #[error(
        "app.{app}: QUIC on netns has no controller = \"{controller}\" (it has: {known}); choose \
         one of these, or --on sim"
    )]
    QuicController { app: String, controller: String, known: String },
    /// A congestion controller that the kernel does not have.
    #[error(
        "app.{app}: the kernel has no TCP congestion controller for controller = \
         \"{controller}\" (it has: {known}); load its module (modprobe tcp_{kernel_name}), choose \
         another, or choose --on sim"
    )]
    Controller { app: String, controller: String, kernel_name: String, known: String },
    /// A congestion controller that a kernel has while plait's is loaded, or its own module.
    #[error(
        "app.{app}: this kernel has no TCP congestion controller for controller = \
         \"{controller}\" (it has: {known}); load plait's (plait cc load {controller}), choose \
         another, or choose --on sim"
    )]
    LoadedController { app: String, controller: String, known: String },
    /// A congestion controller that no kernel of Linux has.
    #[error(
        "app.{app}: controller = \"{controller}\" is no TCP congestion controller of Linux (this \
         kernel has: {known}); choose another, or choose --on sim"
    )]
    SimController { app: String, controller: String, known: String },
    /// Something that a kernel's congestion controller cannot be told.
    #[error(
        "app.{app}: congestion controllers on netns do not take {option}; take it out, or choose \
         --on sim"
    )]
    ControllerOption { app: String, option: &'static str },
    /// A loss recovery that the kernel no longer has.
    #[error(
        "app.{app}: recovery = \"{recovery}\" needs a kernel older than Linux 6.17, and this is \
         {kernel}, whose TCP has RACK-TLP alone; choose recovery = \"rack-tlp\", or --on sim"
    )]
    Recovery { app: String, recovery: String, kernel: String },
    /// A sender that does not undo a spurious reduction.
    #[error(
        "app.{app}: the kernel's TCP takes back a reduction that proves needless (RFC 3522, \
         RFC 3708), and cannot be told not to; write undo = true, or choose --on sim"
    )]
    Undo { app: String },
    /// Two senders with different SACK settings.
    #[error(
        "app.{app} and app.{other}: all TCP of a run has SACK on netns, or none; give both the \
         same `sack`, or choose --on sim"
    )]
    Sacks { app: String, other: String },
    /// Two senders of one host with different loss recoveries.
    #[error(
        "app.{app} and app.{other}: a host has one loss recovery for all its TCP on netns; give \
         both the same `recovery`, or choose --on sim"
    )]
    Recoveries { app: String, other: String },
    /// More of something than the lab supports.
    #[error("{what}: {count} where netns takes {max} at most; make it less, or choose --on sim")]
    TooMany { what: String, count: u64, max: u64 },
    /// A packet longer than hosts send.
    #[error(
        "app.{app}: a packet of {bytes} bytes does not leave a host, whose device takes {max} on \
         netns; make payload_bytes {less} less, or choose --on sim"
    )]
    Length { app: String, bytes: u32, max: u32, less: u32 },
    /// A file in a folder that the lab hides from itself.
    #[error(
        "{file}: the lab has a /run of its own on netns, and what is written there is lost; name \
         a file elsewhere"
    )]
    Hidden { file: String },
    /// The machine did not keep up, so that the figures would be wrong.
    #[error(
        "this machine was too slow or too loaded for the run, and its figures would be wrong: \
         {seen}; end other programs, lower the scenario's rates, or choose --on sim"
    )]
    TooSlow { seen: String },
}
