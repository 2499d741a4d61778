//! The HTTP server: few connections at a time, each for one request and for a bounded time.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use plait_net::clock::lower_priority;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::exposition::{Exposition, Served};
use super::labels::PathNames;
use crate::daemon::requests::{Request as Asked, Requests};

/// Connections at a time; more are closed unheard.
const CONNECTIONS_MAX: usize = 16;
/// What is read of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// For a request's head to come in.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// For a whole connection: a thousand peers are megabytes.
const CONNECTION_TIME: Duration = Duration::from_secs(20);
/// The status is gathered at most this often.
const AGE_MAX: Duration = Duration::from_secs(1);
/// Pause after a failed accept, such as without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The last text, and what makes the next.
struct Metrics {
    requests: Requests,
    kept: Mutex<Option<(Instant, Bytes)>>,
    paths: std::sync::Mutex<PathNames>,
    scrapes: AtomicU64,
    refused: AtomicU64,
}

/// Starts the server on a thread of its own.
pub(super) fn start(listener: TcpListener, requests: Requests) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .thread_name("metrics")
        .build()
        .context("cannot start the server of metrics")?;
    let metrics = Arc::new(Metrics {
        requests,
        kept: Mutex::default(),
        paths: std::sync::Mutex::default(),
        scrapes: AtomicU64::default(),
        refused: AtomicU64::default(),
    });
    thread::Builder::new()
        .name("metrics".into())
        .spawn(move || run(&runtime, listener, metrics))
        .context("cannot start a thread")?;
    Ok(())
}

fn run(runtime: &Runtime, listener: TcpListener, metrics: Arc<Metrics>) {
    // The loop has packets to carry.
    if let Err(error) = lower_priority() {
        log::debug!("metrics have the loop's priority: {error}");
    }
    runtime.block_on(async {
        match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => accept(listener, metrics).await,
            Err(error) => log::error!("no metrics: {error}"),
        }
    });
}

async fn accept(listener: tokio::net::TcpListener, metrics: Arc<Metrics>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::debug!("the server of metrics cannot accept: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            metrics.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let metrics = Arc::clone(&metrics);
        tokio::spawn(async move {
            let _slot = slot;
            if timeout(CONNECTION_TIME, serve(stream, metrics)).await.is_err() {
                log::debug!("a client of the metrics took too long");
            }
        });
    }
}

async fn serve(stream: TcpStream, metrics: Arc<Metrics>) {
    let service = service_fn(|request| {
        let metrics = Arc::clone(&metrics);
        async move { Ok::<_, Infallible>(answer(&request, metrics).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        log::debug!("a client of the metrics: {error}");
    }
}

async fn answer(request: &Request<Incoming>, metrics: Arc<Metrics>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    if !matches!(path, "/" | "/metrics") {
        return told(StatusCode::NOT_FOUND, "not found: see /metrics\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = told(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if path == "/" {
        return told(StatusCode::OK, "plait: the metrics are at /metrics\n");
    }
    match metrics.text().await {
        Some(text) => response(StatusCode::OK, METRICS, text),
        None => told(StatusCode::SERVICE_UNAVAILABLE, "the gateway is too busy, or is ending\n"),
    }
}

fn told(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    response(status, PLAIN, Bytes::from_static(text.as_bytes()))
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

impl Metrics {
    /// The metrics' text; `None` when the loop does not answer.
    async fn text(self: Arc<Self>) -> Option<Bytes> {
        self.scrapes.fetch_add(1, Ordering::Relaxed);
        // Who comes while another's is made waits for it, and gets the same.
        let mut kept = self.kept.lock().await;
        if let Some((at, text)) = &*kept
            && at.elapsed() < AGE_MAX
        {
            return Some(text.clone());
        }
        let maker = Arc::clone(&self);
        let made = spawn_blocking(move || maker.make()).await.ok().flatten();
        *kept = made.clone().map(|text| (Instant::now(), text));
        made
    }

    fn make(&self) -> Option<Bytes> {
        let begun = Instant::now();
        let snapshot = self.requests.ask(Asked::Status)?;
        let served = Served {
            scrapes: self.scrapes.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            gathered_in: begun.elapsed(),
        };
        // A name that was noted stays noted, whatever happened to the thread that did.
        let mut paths = self.paths.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(Exposition::new(snapshot, served, &mut paths).into_text().into())
    }
}
