//! Inner packets that can be told apart.

use crate::gateway::INNER_IPS;

/// Bytes of the IPv4 and UDP headers and the number of a packet.
pub const PACKET_BYTES_MIN: usize = 32;

/// An inner UDP packet from one side to the other, as short as it can be.
pub fn packet(from: usize, flow: u16, number: u32) -> Vec<u8> {
    packet_of(from, flow, number, PACKET_BYTES_MIN)
}

/// An inner UDP packet from one side to the other, of [`PACKET_BYTES_MIN`] bytes at least.
pub fn packet_of(from: usize, flow: u16, number: u32, bytes: usize) -> Vec<u8> {
    between(INNER_IPS[from], INNER_IPS[1 - from], flow, number, bytes)
}

/// An inner UDP packet between any two addresses, as short as it can be.
pub fn packet_with(source: [u8; 4], destination: [u8; 4], flow: u16, number: u32) -> Vec<u8> {
    between(source, destination, flow, number, PACKET_BYTES_MIN)
}

fn between(source: [u8; 4], destination: [u8; 4], flow: u16, number: u32, bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(PACKET_BYTES_MIN) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&bytes.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&source);
    packet.extend_from_slice(&destination);
    packet.extend_from_slice(&flow.to_be_bytes());
    packet.extend_from_slice(&[0, 9]);
    packet.extend_from_slice(&(bytes - 20).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.resize(usize::from(bytes), number as u8);
    packet
}

/// The number that [`packet`] and its like wrote.
///
/// # Panics
/// When the packet is too short to be one of them.
pub fn number(packet: &[u8]) -> u32 {
    let number = packet.get(28..PACKET_BYTES_MIN).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(number.expect("a packet of ours"))
}
