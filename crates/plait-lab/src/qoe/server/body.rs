//! Bodies of answers, and connections that are watched for progress.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a file that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// What the server answers with.
pub(crate) type Content = Either<Full<Bytes>, FileBody>;

pub(crate) fn text(bytes: impl Into<Bytes>) -> Content {
    Either::Left(Full::new(bytes.into()))
}

/// Part of a file, read as the client takes it.
#[derive(Debug)]
pub(crate) struct FileBody {
    file: File,
    left: u64,
    chunk: Vec<u8>,
}

impl FileBody {
    /// The next `length` bytes of the file.
    pub(crate) fn new(file: File, length: u64) -> Self {
        Self { file, left: length, chunk: vec![0; CHUNK_BYTES] }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { file, left, chunk } = self.get_mut();
        if *left == 0 {
            return Poll::Ready(None);
        }
        let most = usize::try_from(*left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let mut buffer = ReadBuf::new(&mut chunk[..most]);
        ready!(Pin::new(file).poll_read(context, &mut buffer))?;
        let read = buffer.filled();
        if read.is_empty() {
            // The file has become shorter since its length was told.
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        *left -= read.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(read)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// When bytes last went over a connection.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    start: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), last_ms: Arc::new(AtomicU64::new(0)) }
    }

    fn note(&self) {
        let now_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Ordering::Relaxed);
    }

    /// How long nothing has moved.
    fn still(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last)
    }

    /// Returns once nothing has moved for so long.
    pub(crate) async fn stopped(&self, limit: Duration) {
        while self.still() < limit {
            tokio::time::sleep(limit.saturating_sub(self.still())).await;
        }
    }
}

/// A connection that notes its progress.
#[derive(Debug)]
pub(crate) struct Watched<T> {
    pub(crate) inner: T,
    pub(crate) progress: Progress,
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_read(context, buffer);
        if result.is_ready() {
            this.progress.note();
        }
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write(context, bytes);
        if result.is_ready() {
            this.progress.note();
        }
        result
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.inner).poll_write_vectored(context, parts);
        if result.is_ready() {
            this.progress.note();
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}
