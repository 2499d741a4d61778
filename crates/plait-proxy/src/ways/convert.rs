//! The 0-RTT TCP Convert Protocol's server side (RFC 8803): a Transport Converter.
//!
//! The kernel answers a client's SYN by itself, before this program knows what it asks for. So the
//! answer to a Connect comes with the first bytes and not in the SYN+ACK (section 4.1 allows both).

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::convert::{
    Asked, HEADER_BYTES, MalformedMessage, Message, answer_to, asked_for, decode, encode, length_of,
};
use crate::refusal::Refusal;
use crate::session::Session;

pub(super) async fn serve(session: Session, mut stream: TcpStream) {
    let limit = session.shared.config.limits.request_timeout;
    let read = match timeout(limit, read_message(&mut stream)).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) => return session.refused(Refusal::Malformed),
        Err(_) => {
            session.refused(Refusal::RequestTimeout);
            return answer(&mut stream, &refused(Refusal::RequestTimeout)).await;
        }
    };
    match asked_for(read) {
        Ok(Asked::Connect(server)) => match session.connect(Some(server.into())).await {
            Ok(server) => {
                answer(&mut stream, &answer_to(Ok(()))).await;
                session.tunnel(stream, server, Bytes::new()).await;
            }
            Err(refusal) => answer(&mut stream, &refused(refusal)).await,
        },
        Ok(Asked::Answer(message)) => answer(&mut stream, &message).await,
        Err(message) => {
            session.refused(Refusal::Malformed);
            answer(&mut stream, &message).await;
        }
    }
}

fn refused(refusal: Refusal) -> Message {
    answer_to(Err(refusal.convert()))
}

/// Reads one message, and not a byte more: what follows is for the server.
async fn read_message(stream: &mut TcpStream) -> io::Result<Result<Message, MalformedMessage>> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).await?;
    let length = match length_of(header) {
        Ok(length) => length,
        Err(error) => return Ok(Err(error)),
    };
    let mut body = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut body).await?;
    Ok(decode(&body))
}

async fn answer(stream: &mut TcpStream, message: &Message) {
    let bytes = encode(message).expect("an answer has one short TLV");
    // A client that is gone needs no answer.
    let _ = stream.write_all(&bytes).await;
}
