//! Requests with a whole URL: passed on to its server, and the answer back. Nothing is kept.

use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Body, Client, headers};
use crate::dial::Dialled;
use crate::refusal::Refusal;
use crate::target::Target;

/// A connection to a server that has answered, and may be asked again.
pub(super) struct Server {
    target: Target,
    sender: SendRequest<BoxBody<Bytes, hyper::Error>>,
}

/// Passes a request on and gives the server's answer.
pub(super) async fn answer(
    of_client: &Client,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (target, counted) = {
        let session = of_client.session.lock().await;
        let session = session.as_ref().ok_or(Refusal::Malformed)?;
        let prepared = prepare(&mut request, &session.shared.pseudonym);
        (prepared.inspect_err(|refusal| session.refused(*refusal))?, session.admission.counted())
    };
    let (target, upgrade) = target;
    let upgraded_client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let up = counted.clone();
    let request = request.map(|body| count(body, move |bytes| up.up(bytes)));
    let (server, mut response) = ask(of_client, &target, request).await?;
    let upgrade = headers::remove_hop_by_hop(response.headers_mut());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let (Some(client), Some(protocol)) = (upgraded_client, upgrade)
    {
        // The connection stays counted, within its bounds and watched, for as long as it lasts.
        let session = of_client.session.lock().await.take().ok_or(Refusal::Malformed)?;
        let server = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            // Either may be gone before the other has changed.
            let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
            let client = client.downcast::<TokioIo<TcpStream>>();
            let server = server.downcast::<TokioIo<TcpStream>>();
            let (Ok(client), Ok(server)) = (client, server) else { return };
            let first = server.read_buf;
            let dialled = Dialled { first, ..server.io.into_inner().into() };
            session.tunnel(client.io.into_inner(), dialled, client.read_buf).await;
        });
        restore_upgrade(response.headers_mut(), protocol);
        return Ok(response.map(|body| body.boxed()));
    }
    *of_client.server.lock().await = Some(server);
    Ok(response.map(|body| count(body, move |bytes| counted.down(bytes))))
}

/// Asks the server of the last request again, if it is the same one, or else a new connection.
async fn ask(
    client: &Client,
    target: &Target,
    mut request: Request<Body>,
) -> Result<(Server, Response<Incoming>), Refusal> {
    let kept = client.server.lock().await.take();
    if let Some(mut server) = kept.filter(|server| server.target == *target)
        && server.sender.ready().await.is_ok()
    {
        match server.sender.try_send_request(request).await {
            Ok(response) => return Ok((server, response)),
            // It had closed the connection meanwhile, and has seen nothing of the request.
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(failed(client, target, &error.into_error()).await),
            },
        }
    }
    let mut server = connect(client, target).await?;
    match server.sender.send_request(request).await {
        Ok(response) => Ok((server, response)),
        Err(error) => Err(failed(client, target, &error).await),
    }
}

/// A server that took a connection and gave no answer.
async fn failed(client: &Client, target: &Target, error: &hyper::Error) -> Refusal {
    log::debug!("{target}: {error}");
    if let Some(session) = client.session.lock().await.as_ref() {
        session.refused(Refusal::Unreachable);
    }
    Refusal::Unreachable
}

/// Turns a client's request into one for its server; says which that is, and whether the client
/// wants to go on in another protocol afterwards.
fn prepare(
    request: &mut Request<Incoming>,
    pseudonym: &str,
) -> Result<(Target, Option<HeaderValue>), Refusal> {
    // A server's own form means that the client takes this for the server.
    let scheme = request.uri().scheme_str().ok_or(Refusal::Malformed)?;
    if scheme != "http" {
        return Err(Refusal::Unsupported);
    }
    let authority = request.uri().authority().ok_or(Refusal::Malformed)?.to_string();
    let target = Target::parse(&authority, Some(80)).ok_or(Refusal::Malformed)?;
    let upgrade = headers::remove_hop_by_hop(request.headers_mut());
    headers::pass(request.headers_mut(), pseudonym)?;
    if let Some(protocol) = &upgrade {
        restore_upgrade(request.headers_mut(), protocol.clone());
    }
    let host = HeaderValue::try_from(authority).map_err(|_| Refusal::Malformed)?;
    request.headers_mut().insert(HOST, host);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
    *request.version_mut() = Version::HTTP_11;
    Ok((target, upgrade))
}

fn restore_upgrade(headers: &mut hyper::HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

async fn connect(client: &Client, target: &Target) -> Result<Server, Refusal> {
    let Dialled { stream, first, .. } = {
        let session = client.session.lock().await;
        let session = session.as_ref().ok_or(Refusal::Malformed)?;
        session.connect(Some(target.clone())).await?
    };
    if !first.is_empty() {
        // A server of HTTP does not speak before it is asked.
        return Err(Refusal::UpstreamFailed);
    }
    let shaken = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|_| Refusal::Unreachable)?;
    tokio::spawn(connection.with_upgrades());
    Ok(Server { target: target.clone(), sender })
}

/// A body whose bytes are counted as they pass.
fn count(body: Incoming, count: impl Fn(usize) + Send + Sync + 'static) -> Body {
    body.map_frame(move |frame| {
        count(frame.data_ref().map_or(0, Bytes::len));
        frame
    })
    .boxed()
}
