//! Pages. A thread reads them one after another, each over new connections; every connection has a
//! thread that requests one object after another, and a thread that serves it at the other end.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Mutex;

use anyhow::{Context, Result};
use plait_sim::prng::Prng;
use plait_sim::scenario::app::WebSpec;

use super::{CHUNK_BYTES, Shared, TcpApp};
use crate::run::netns::site::Ends;

/// The first bytes of a request: the length of the object.
const LENGTH_BYTES: usize = size_of::<u64>();

/// A page being loaded.
struct Page {
    reader: Ipv4Addr,
    server: SocketAddrV4,
    /// Lengths of the objects not requested yet.
    objects: Mutex<VecDeque<u64>>,
}

impl TcpApp {
    pub(super) fn start_pages(
        &mut self,
        spec: WebSpec,
        seed: u64,
        port: u16,
        ends: Ends<'_>,
    ) -> Result<()> {
        let server = SocketAddrV4::new(ends.sender.1, port);
        let listener = self.shared.plan.listen(ends.sender.0, server, true)?;
        self.spawn(ends.sender.0, move |shared| shared.serve(&listener))?;
        let (netns, reader) = ends.receiver;
        self.spawn(netns, move |shared| shared.read_pages(&spec, seed, reader, server))
    }
}

impl Shared {
    /// Accepts connections, each with its own thread.
    fn serve(&self, listener: &TcpListener) -> Result<()> {
        std::thread::scope(|scope| {
            while let Some(stream) = self.accept(listener)? {
                scope.spawn(|| self.note(self.serve_one(stream)));
            }
            Ok(())
        })
    }

    fn serve_one(&self, stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        self.send_over(stream, |stream| self.answer(stream))
    }

    /// Sends requested objects until the reader closes.
    fn answer(&self, stream: &TcpStream) -> Result<()> {
        let mut request = [0; WebSpec::REQUEST_BYTES];
        while self.read_exact(stream, &mut request, |_| ())? {
            let length = request.first_chunk::<LENGTH_BYTES>();
            let length = u64::from_be_bytes(*length.expect("a request begins with a length"));
            self.write(stream, length).context("a server of pages")?;
        }
        Ok(())
    }

    fn read_pages(
        &self,
        spec: &WebSpec,
        seed: u64,
        reader: Ipv4Addr,
        server: SocketAddrV4,
    ) -> Result<()> {
        let mut prng = Prng::new(seed);
        let mut next_page_at = self.plan.start;
        while self.wait_until(next_page_at) && self.goes_on() {
            let started_at = self.now();
            let objects = (0..spec.objects).map(|_| spec.draw_object(&mut prng)).collect();
            let page = Page { reader, server, objects: Mutex::new(objects) };
            if !self.read_page(&page, spec.connections.min(spec.objects))? {
                break;
            }
            let now = self.now();
            if self.plan.span.holds(now) {
                self.lock().page_loads_s.push(now.since(started_at).as_secs_f64());
            }
            next_page_at = now + spec.think;
        }
        Ok(())
    }

    /// Fetches a page's objects; false when the application was stopped meanwhile.
    fn read_page(&self, page: &Page, connections: u32) -> Result<bool> {
        std::thread::scope(|scope| {
            let fetch = || self.fetch(page);
            let fetchers: Vec<_> = (0..connections).map(|_| scope.spawn(fetch)).collect();
            let mut is_whole = true;
            for fetcher in fetchers {
                let done = fetcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                is_whole &= done?;
            }
            Ok(is_whole)
        })
    }

    /// One connection of a page. It closes when it is dropped.
    fn fetch(&self, page: &Page) -> Result<bool> {
        let socket = self.plan.open(false)?;
        socket.bind(&SocketAddr::from((page.reader, 0)).into())?;
        let Some(stream) = self.connect(socket, page.server)? else { return Ok(false) };
        stream.set_nodelay(true)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let next = page.objects.lock().expect("no thread panics with the list").pop_front();
            let Some(object_bytes) = next else { return Ok(true) };
            let mut request = [0; WebSpec::REQUEST_BYTES];
            request[..LENGTH_BYTES].copy_from_slice(&object_bytes.to_be_bytes());
            (&stream).write_all(&request).context("a reader of pages")?;
            let mut left = usize::try_from(object_bytes)?;
            while left > 0 {
                let length = left.min(CHUNK_BYTES);
                let take = |bytes| self.take(self.now(), bytes);
                if !self.read_exact(&stream, &mut chunk[..length], take)? {
                    return Ok(false);
                }
                left -= length;
            }
        }
    }

    /// Fills `buffer`, and reports bytes as they come; false when the other end closed or the
    /// application is over.
    fn read_exact(
        &self,
        stream: &TcpStream,
        mut buffer: &mut [u8],
        mut take: impl FnMut(u64),
    ) -> Result<bool> {
        while !buffer.is_empty() {
            let length = match self.read(stream, buffer) {
                // The other end stopped first.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                read => read.context("a connection of pages")?,
            };
            if length == 0 {
                return Ok(false);
            }
            take(length as u64);
            buffer = &mut buffer[length..];
        }
        Ok(true)
    }
}
