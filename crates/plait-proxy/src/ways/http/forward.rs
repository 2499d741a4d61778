//! Requests with a whole URL: passed on to its server, and the answer back. Nothing is kept.

use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::{Body, Client, headers};
use crate::refusal::Refusal;
use crate::target::Target;

/// A connection to a server that has answered, and may be asked again.
pub(super) struct Server {
    target: Target,
    sender: SendRequest<BoxBody<Bytes, hyper::Error>>,
}

/// Passes a request on and gives the server's answer.
pub(super) async fn answer(
    client: &Client,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (target, counted) = {
        let session = client.session.lock().await;
        let session = session.as_ref().ok_or(Refusal::Malformed)?;
        let prepared = prepare(&mut request, &session.shared.pseudonym);
        (prepared.inspect_err(|refusal| session.refused(*refusal))?, session.admission.counted())
    };
    let (target, upgrade) = target;
    let upgraded_client = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let mut server = server_for(client, &target).await?;
    let up = counted.clone();
    let request = request.map(|body| count(body, move |bytes| up.up(bytes)));
    let response = server.sender.send_request(request).await;
    let mut response = response.map_err(|error| {
        log::debug!("{target}: {error}");
        Refusal::Unreachable
    })?;
    let upgrade = headers::remove_hop_by_hop(response.headers_mut());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let (Some(client), Some(protocol)) = (upgraded_client, upgrade)
    {
        let server = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
            let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            if let Ok((up, down)) = copy_bidirectional(&mut client, &mut server).await {
                counted.up(up as usize);
                counted.down(down as usize);
            }
        });
        restore_upgrade(response.headers_mut(), protocol);
        return Ok(response.map(|body| body.boxed()));
    }
    *client.server.lock().await = Some(server);
    Ok(response.map(|body| count(body, move |bytes| counted.down(bytes))))
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

/// The connection of the last request, if it went to the same server, or a new one.
async fn server_for(client: &Client, target: &Target) -> Result<Server, Refusal> {
    let kept = client.server.lock().await.take();
    if let Some(mut server) = kept.filter(|server| server.target == *target)
        && server.sender.ready().await.is_ok()
    {
        return Ok(server);
    }
    let stream = {
        let session = client.session.lock().await;
        let session = session.as_ref().ok_or(Refusal::Malformed)?;
        session.connect(Some(target.clone())).await?
    };
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
