//! The HTTP server of the measuring application: page, clips, runs. Every client is bounded: in
//! number, in what it may send, and in how long it may stand still.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

mod answer;
mod body;
mod cmcd;
mod place;
mod range;
mod store;

use answer::Site;
use body::{Progress, Watched};
use store::Store;

use super::youtube::Key;

/// The log of what players say of themselves, in the folder of runs.
const LOG: &str = "cmcd.jsonl";
/// Most bytes of a request's head, and of an answer that wait to be sent.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// What clients may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at a time; more wait.
    pub(crate) connections: usize,
    /// For a request's head, and so for an idle connection.
    pub(crate) head: Duration,
    /// For a posted body.
    pub(crate) post: Duration,
    /// Without a byte in either direction. A link under test may be out for a while.
    pub(crate) still: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let [head, post, still] = [60, 60, 180].map(Duration::from_secs);
        Self { connections: 256, head, post, still }
    }
}

/// What a server serves, by its folders.
#[derive(Debug)]
pub(crate) struct Folders<'a> {
    pub(crate) clips: &'a Path,
    pub(crate) runs: &'a Path,
    pub(crate) youtube_key: Option<Key>,
}

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves on a thread of its own. The listener may be of another namespace.
    pub(crate) fn start(
        listener: TcpListener,
        folders: Folders<'_>,
        limits: Limits,
    ) -> io::Result<Self> {
        let runs = Store::open(folders.runs)?;
        let log = cmcd::Log::open(&folders.runs.join(LOG))?;
        let site = Arc::new(Site {
            clips: folders.clips.to_owned(),
            runs: Mutex::new(runs),
            log: Mutex::new(log),
            youtube_key: folders.youtube_key,
            post_limit: limits.post,
        });
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("qoe-server".into()).spawn(move || {
            // Either its word or its end stops the server.
            let stopped = async { drop(stopped.await) };
            runtime.block_on(first(accept(listener, &site, limits), stopped));
            runtime.shutdown_background();
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the program is ended.
    pub(crate) fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _gone = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, site: &Arc<Site>, limits: Limits) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let site = Arc::clone(site);
                tokio::spawn(async move {
                    serve(stream, &site, limits).await;
                    drop(place);
                });
            }
            // Out of descriptors, or a client that is gone again.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, site: &Arc<Site>, limits: Limits) {
    // Without this the last packet of a segment waits for an acknowledgement.
    let _not_tcp = stream.set_nodelay(true);
    let progress = Progress::new();
    let watched = Watched { inner: stream, progress: progress.clone() };
    let service =
        service_fn(|request| async move { Ok::<_, Infallible>(site.answer(request).await) });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(watched), service);
    // What a client does wrong ends its connection, and nothing else.
    let connection = async { drop(connection.await) };
    first(connection, progress.stopped(limits.still)).await;
}

/// Runs both until one of them is done.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        let is_done =
            one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready();
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests;
