//! In-memory twins of the ports, for tests of the code above them. They drop where the kernel
//! would, never block, and may be shared between threads.

mod tun;
mod udp;

pub use self::tun::MemoryTun;
pub use self::udp::{MemoryNetwork, MemoryUdp};
