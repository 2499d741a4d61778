//! Bulk transfers. Each flow has a thread that writes and one that reads.

use std::net::{SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_sim::scenario::app::TcpSpec;
use plait_sim::tcp::ReceiverConfig;
use socket2::{SockRef, Socket};

use super::{CHUNK_BYTES, Shared, TcpApp};
use crate::run::netns::site::Ends;

impl TcpApp {
    pub(super) fn start_bulk(&mut self, spec: &TcpSpec, port: u16, ends: Ends<'_>) -> Result<()> {
        let (sender, receiver) = (ends.sender, ends.receiver);
        let target = SocketAddrV4::new(receiver.1, port);
        let shared = Arc::clone(&self.shared);
        let listener = Arc::new(shared.plan.listen(receiver.0, target, false)?);
        let window_bytes_max = spec.tcp.window_bytes_max;
        // The default equals the kernel's own limit of a window.
        if window_bytes_max < ReceiverConfig::WINDOW_BYTES_MAX {
            plait_net::tcp::set_receive_window(&listener, usize::try_from(window_bytes_max)?)?;
        }
        let transfer_bytes = spec.transfer_bytes.unwrap_or(u64::MAX);
        for _ in 0..spec.flows {
            let opened = sender.0.run_in(|| -> Result<Socket> {
                let socket = shared.plan.open(true)?;
                socket.bind(&SocketAddr::from((sender.1, 0)).into())?;
                Ok(socket)
            });
            let socket = opened?.context("cannot open a TCP socket")?;
            let listener = Arc::clone(&listener);
            self.spawn(receiver.0, move |shared| shared.receive(&listener))?;
            self.spawn(sender.0, move |shared| shared.send(socket, target, transfer_bytes))?;
        }
        Ok(())
    }
}

impl Shared {
    fn send(&self, socket: Socket, to: SocketAddrV4, bytes: u64) -> Result<()> {
        // Unsent data must not be sent after the stop.
        socket.set_linger(Some(Duration::ZERO))?;
        if !self.wait_until(self.plan.start) {
            return Ok(());
        }
        let Some(stream) = self.connect(socket, to)? else { return Ok(()) };
        self.send_over(stream, |stream| {
            self.write(stream, bytes).context("a TCP sender")?;
            self.wait_until(self.plan.stop);
            Ok(())
        })
    }

    fn receive(&self, listener: &TcpListener) -> Result<()> {
        let Some(stream) = self.accept(listener)? else { return Ok(()) };
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let bytes = self.read(&stream, &mut chunk).context("a TCP receiver")?;
            let now = self.now();
            if bytes == 0 || now >= self.plan.stop {
                return Ok(());
            }
            self.take(now, bytes as u64);
        }
    }
}
