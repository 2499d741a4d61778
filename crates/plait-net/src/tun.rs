//! TUN devices: IP packets between the kernel and this process.
//!
//! With offload one read brings up to 64 KB of one flow, which [`segment`] splits, and one write
//! takes as much, which [`coalesce`] joins. Without it one read or write is one packet.

pub mod coalesce;
mod headers;
pub mod segment;
pub mod vnet;
mod writer;

#[cfg(test)]
mod test_packets;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use self::vnet::{VNET_HEADER_LEN, VnetHeader};
use self::writer::{AggregateWriter, RawDevice};
use crate::batch::PacketBatch;
use crate::sys;

/// The device that every TUN interface is made from.
pub const TUN_DEVICE: &str = "/dev/net/tun";

/// Bytes of one read: the vnet header and the longest packet, which is IPv6 with a full payload.
const READ_BUFFER_BYTES: usize = VNET_HEADER_LEN + 65_535 + 40;

/// Why a TUN device could not be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The kernel has no TUN driver or the container no device node.
    #[error(
        "{TUN_DEVICE} is missing: load the tun module (modprobe tun), or give the container the \
         device (--device {TUN_DEVICE})"
    )]
    NoDevice,
    /// The device node may not be opened by this user.
    #[error(
        "no permission to open {TUN_DEVICE} (mode {mode:04o}): run as root, or let this user open \
         it (chmod 0666 {TUN_DEVICE})"
    )]
    OpenDenied {
        /// Permission bits of the device node.
        mode: u32,
    },
    /// The node could be opened, but the interface may not be made.
    #[error(
        "no permission to make the interface {name}: give the program CAP_NET_ADMIN, or make the \
         interface for this user beforehand (ip tuntap add {name} mode tun user USER vnet_hdr)"
    )]
    CreateDenied {
        /// The interface.
        name: String,
    },
    /// Another program holds the interface.
    #[error("the interface {name} is in use by another program: stop it or choose another name")]
    NameInUse {
        /// The interface.
        name: String,
    },
    /// There is an interface of that name which this device cannot become.
    #[error(
        "the interface name {name} is invalid or belongs to an interface of another kind: choose \
         another name"
    )]
    NameUnusable {
        /// The interface.
        name: String,
    },
    /// More than 15 bytes.
    #[error(
        "the interface name {name} is longer than {} bytes: shorten it",
        sys::tun::NAME_LEN_MAX
    )]
    NameTooLong {
        /// The interface.
        name: String,
    },
    /// Any other refusal of the kernel.
    #[error("cannot open the interface {name}: {action} failed")]
    Io {
        /// The interface.
        name: String,
        /// The step that failed.
        action: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What the device agreed to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Offload {
    /// Plain packets without a vnet header.
    None,
    /// Partial checksums, single packets.
    Checksum,
    /// TCP super-packets too.
    Tcp,
    /// UDP super-packets too (Linux 6.2).
    TcpUdp,
}

/// What happened on a device since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunCounters {
    /// Reads that brought something.
    pub reads: u64,
    /// Packets read, after splitting.
    pub read_packets: u64,
    /// Packets and super-packets whose headers were inconsistent.
    pub dropped_malformed: u64,
    /// Packets written, counted singly.
    pub written_packets: u64,
    /// Writes that carried several packets.
    pub written_aggregates: u64,
    /// Aggregates that the kernel refused; their packets were written singly.
    pub refused_aggregates: u64,
    /// Packets dropped because the kernel had no room.
    pub dropped_full: u64,
    /// Packets dropped because the kernel did not take them for IP packets.
    pub dropped_invalid: u64,
}

/// A source and sink of IP packets.
pub trait TunPort {
    /// Does one read and appends what it brings to `batch`: none, one or many packets. False when
    /// nothing is waiting.
    ///
    /// # Errors
    /// The kernel's, when the device is gone.
    fn recv(&mut self, batch: &mut PacketBatch) -> io::Result<bool>;

    /// Sends a copy of `packet`, at the latest with the next [`flush`](Self::flush). Order is
    /// kept. A packet for which the kernel has no room is dropped and counted.
    ///
    /// # Errors
    /// The kernel's, when the device is gone or down.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Sends packets that wait to be joined with later ones. Call at the end of every batch.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn flush(&mut self) -> io::Result<()>;
}

/// A TUN interface that lives as long as this value.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    offload: Offload,
    buffer: Box<[u8]>,
    writer: AggregateWriter,
    counters: TunCounters,
}

impl Tun {
    /// Makes the interface `name`, nonblocking; a `%d` in it is replaced by the first free number.
    /// With `offload` it uses as much offload as the kernel has.
    ///
    /// # Errors
    /// [`TunError`], each with its remedy.
    pub fn open(name: &str, offload: bool) -> Result<Self, TunError> {
        if name.len() > sys::tun::NAME_LEN_MAX {
            return Err(TunError::NameTooLong { name: name.to_owned() });
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(TUN_DEVICE)
            .map_err(|error| open_error(name, error))?;
        let given = sys::tun::set_interface(file.as_fd(), name, offload)
            .map_err(|error| create_error(name, error))?;
        let offload = if offload { negotiate(&file, &given)? } else { Offload::None };
        Ok(Self {
            file,
            name: given,
            offload,
            buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            writer: AggregateWriter::new(offload >= Offload::Tcp, offload >= Offload::TcpUdp),
            counters: TunCounters::default(),
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the device agreed to.
    pub fn offload(&self) -> Offload {
        self.offload
    }

    /// What has happened so far through [`TunPort`].
    pub fn counters(&self) -> TunCounters {
        self.counters
    }

    /// Reads one packet into `buf` and returns its length; `None` when nothing is waiting. A
    /// packet longer than `buf` is cut. Two threads may read and write at once.
    ///
    /// # Errors
    /// The kernel's.
    ///
    /// # Panics
    /// When the device was opened with offload.
    pub fn read_packet(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        self.assert_plain();
        read_one(&self.file, buf)
    }

    /// Writes one packet.
    ///
    /// # Errors
    /// The kernel's; [`io::ErrorKind::WouldBlock`] when it has no room.
    ///
    /// # Panics
    /// When the device was opened with offload.
    pub fn write_packet(&self, packet: &[u8]) -> io::Result<()> {
        self.assert_plain();
        write_one(&self.file, &[IoSlice::new(packet)])
    }

    fn assert_plain(&self) {
        assert!(
            self.offload == Offload::None,
            "single packets are read and written on devices opened without offload"
        );
    }
}

impl TunPort for Tun {
    fn recv(&mut self, batch: &mut PacketBatch) -> io::Result<bool> {
        let Some(len) = read_one(&self.file, &mut self.buffer)? else { return Ok(false) };
        self.counters.reads += 1;
        let before = batch.len();
        if self.offload == Offload::None {
            batch.push(&self.buffer[..len]);
        } else if unpack(&mut self.buffer[..len], batch).is_err() {
            self.counters.dropped_malformed += 1;
        }
        self.counters.read_packets += (batch.len() - before) as u64;
        Ok(true)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.offload != Offload::None {
            return self.writer.send(&self.file, packet, &mut self.counters);
        }
        match write_one(&self.file, &[IoSlice::new(packet)]) {
            Ok(()) => {
                self.counters.written_packets += 1;
                Ok(())
            }
            Err(error) => writer::count_drop(error, 1, &mut self.counters),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush(&self.file, &mut self.counters)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl RawDevice for File {
    fn write(&self, header: &[u8; VNET_HEADER_LEN], packet: &[u8]) -> io::Result<()> {
        write_one(self, &[IoSlice::new(header), IoSlice::new(packet)])
    }
}

/// Splits what one read of an offloading device brought.
fn unpack(read: &mut [u8], batch: &mut PacketBatch) -> Result<(), segment::Malformed> {
    let (header, packet) =
        read.split_first_chunk_mut::<VNET_HEADER_LEN>().ok_or(segment::Malformed)?;
    let vnet = VnetHeader::parse(header).ok_or(segment::Malformed)?;
    segment::split(&vnet, packet, batch)
}

fn read_one(mut file: &File, buf: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match file.read(buf) {
            Ok(len) => return Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn write_one(mut file: &File, parts: &[IoSlice<'_>]) -> io::Result<()> {
    loop {
        match file.write_vectored(parts) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Asks for the most offload and accepts less on older kernels.
fn negotiate(file: &File, name: &str) -> Result<Offload, TunError> {
    let failed = |action| move |source| TunError::Io { name: name.to_owned(), action, source };
    sys::tun::set_vnet_header_len(file.as_fd(), VNET_HEADER_LEN)
        .map_err(failed("setting the vnet header's length"))?;
    for (flags, offload) in
        [(sys::tun::OFFLOAD_UDP, Offload::TcpUdp), (sys::tun::OFFLOAD_TCP, Offload::Tcp)]
    {
        if sys::tun::set_offload(file.as_fd(), flags).is_ok() {
            return Ok(offload);
        }
    }
    sys::tun::set_offload(file.as_fd(), sys::tun::OFFLOAD_CHECKSUM)
        .map_err(failed("asking for checksum offload"))?;
    Ok(Offload::Checksum)
}

fn open_error(name: &str, error: io::Error) -> TunError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TunError::NoDevice,
        Some(libc::EACCES | libc::EPERM) => {
            let mode = std::fs::metadata(TUN_DEVICE).map_or(0, |data| data.permissions().mode());
            TunError::OpenDenied { mode: mode & 0o7777 }
        }
        _ => TunError::Io { name: name.to_owned(), action: "opening /dev/net/tun", source: error },
    }
}

fn create_error(name: &str, source: io::Error) -> TunError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => TunError::CreateDenied { name },
        Some(libc::EBUSY) => TunError::NameInUse { name },
        Some(libc::EINVAL) => TunError::NameUnusable { name },
        // A file in its place that is no device.
        Some(libc::ENOTTY) => TunError::NoDevice,
        _ => TunError::Io { name, action: "making the interface", source },
    }
}
