//! HTTP: CONNECT (RFC 9110, section 9.3.6), and requests with a whole URL (RFC 9112, section
//! 3.2.2).

mod forward;
mod headers;

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::refusal::Refusal;
use crate::session::Session;
use crate::target::Target;
use forward::Server;

/// What is read of a request before its body, at most.
const HEAD_BYTES_MAX: usize = 64 * 1024;

type Body = BoxBody<Bytes, hyper::Error>;

/// One client's connection.
struct Client {
    /// Goes with the tunnel when there is one.
    session: Mutex<Option<Session>>,
    /// The server of the last plain request, for the next one.
    server: Mutex<Option<Server>>,
}

pub(super) async fn serve(session: Session, stream: TcpStream) {
    let limits = session.shared.config.limits;
    let client = Arc::new(Client { session: Mutex::new(Some(session)), server: Mutex::new(None) });
    let service = {
        let client = Arc::clone(&client);
        service_fn(move |request| {
            let client = Arc::clone(&client);
            async move { Ok::<_, Infallible>(client.answer(request).await) }
        })
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let served = tokio::select! {
        served = connection => served,
        () = client.idle() => Ok(()),
    };
    if let Err(error) = served
        && let Some(session) = client.session.lock().await.as_ref()
    {
        if error.is_parse() || error.is_incomplete_message() {
            session.refused(Refusal::Malformed);
        } else if error.is_timeout() {
            session.refused(Refusal::RequestTimeout);
        }
    }
}

impl Client {
    /// Waits until a plain request's bytes have stopped for too long; a tunnel looks to itself.
    async fn idle(&self) {
        // The session stays here for as long as there is no tunnel.
        loop {
            let watched = self.session.lock().await.as_ref().map(|session| {
                (session.shared.config.limits.idle_timeout, session.admission.counted())
            });
            let Some((timeout, counted)) = watched else { return std::future::pending().await };
            counted.idle(timeout).await;
            if self.session.lock().await.is_some() {
                return;
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let result = match self.check(&request).await {
            Ok(()) if request.method() == Method::CONNECT => self.connect(request).await,
            Ok(()) => forward::answer(self, request).await,
            Err(refusal) => Err(refusal),
        };
        result.unwrap_or_else(|refusal| {
            let mut response = refused(refusal);
            if refusal.is_of_client() {
                // It would only take the place of another that is to be told why.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        })
    }

    /// Whether the client may ask at all.
    async fn check(&self, request: &Request<Incoming>) -> Result<(), Refusal> {
        let session = self.session.lock().await;
        // A client that got its tunnel asks for nothing more.
        let session = session.as_ref().ok_or(Refusal::Malformed)?;
        if let Some(refusal) = session.admission.refusal {
            return Err(refusal);
        }
        let Some(users) = &session.shared.config.clients.users else { return Ok(()) };
        let given = request.headers().get(PROXY_AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok());
        if given.is_some_and(|value| users.know_basic(value)) {
            return Ok(());
        }
        session.refused(Refusal::Unauthorized);
        Err(Refusal::Unauthorized)
    }

    async fn connect(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let mut place = self.session.lock().await;
        let session = place.take().ok_or(Refusal::Malformed)?;
        let authority = request.uri().authority().map(ToString::to_string);
        let target = authority.and_then(|authority| Target::parse(&authority, None));
        let server = match session.connect(target).await {
            Ok(server) => server,
            Err(refusal) => {
                *place = Some(session);
                return Err(refusal);
            }
        };
        tokio::spawn(async move {
            // The client may be gone before it has its answer.
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else { return };
            session.tunnel(parts.io.into_inner(), server, parts.read_buf).await;
        });
        Ok(Response::new(empty()))
    }
}

/// An answer without a body.
fn empty() -> Body {
    Full::default().map_err(|never| match never {}).boxed()
}

/// The answer to a client that is refused: why, for people and programs.
fn refused(refusal: Refusal) -> Response<Body> {
    let text = Bytes::from(format!("{refusal}\n"));
    let mut response = Response::new(Full::new(text).map_err(|never| match never {}).boxed());
    *response.status_mut() = refusal.http();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-plait-refusal", HeaderValue::from_static(refusal.name()));
    if refusal.http() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        let ask = HeaderValue::from_static("Basic realm=\"plait\", charset=\"UTF-8\"");
        headers.insert(PROXY_AUTHENTICATE, ask);
    }
    response
}
