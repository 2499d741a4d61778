//! The service over loopback, with a thread in place of the gateway's loop.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::super::registry::tests::registry;
use super::*;
use crate::daemon::requests::Request;

/// A service that knows only path 3. Every pin and unpin is reported.
fn service() -> (SocketAddr, Receiver<String>) {
    let poll = mio::Poll::new().unwrap();
    let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
    let (sender, asked) = channel();
    let (told, news) = channel();
    thread::spawn(move || {
        // The waker belongs to it.
        let _poll = poll;
        for request in asked {
            match request {
                Request::Pin(path, flow, reply) => {
                    told.send(format!("pin {path} {:#x}", flow.ports)).unwrap();
                    let known = path == PathId(3);
                    let _ = reply.send(if known { Ok(()) } else { Err(PinError::NoPath(path)) });
                }
                Request::Unpin(flow) => told.send(format!("unpin {:#x}", flow.ports)).unwrap(),
                _ => {}
            }
        }
    });
    let (registry, requests) = (registry(), Requests::new(sender, waker));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((stream, source)) = listener.accept() {
            let (registry, requests) = (registry.clone(), requests.clone());
            thread::spawn(move || serve(stream, source, &registry, &requests));
        }
    });
    (address, news)
}

fn said(stream: &mut TcpStream, message: &Message) -> Message {
    message.write(stream).unwrap();
    Message::read(stream).unwrap()
}

fn open(address: SocketAddr) -> (TcpStream, Token) {
    let mut stream = TcpStream::connect(address).unwrap();
    match said(&mut stream, &Message::Open { seconds: 60 }) {
        Message::Welcome { token } => (stream, token),
        other => panic!("{other:?}"),
    }
}

fn join(token: Token, purpose: Purpose, path: Option<u8>, bytes: u64) -> Message {
    Message::Join { token, purpose, path, millis: 30_000, bytes }
}

fn is_refused(message: &Message, expected: Refusal) -> bool {
    matches!(message, Message::Refused { why, .. } if *why == expected)
}

#[test]
fn flows_are_sent_and_counted_and_echoes_come_back() {
    let (address, news) = service();
    let (_holding, token) = open(address);

    let mut down = TcpStream::connect(address).unwrap();
    let ready = said(&mut down, &join(token, Purpose::Down, Some(3), 100_000));
    assert!(matches!(ready, Message::Ready { .. }), "{ready:?}");
    let ports = u32::from(address.port()) << 16 | u32::from(down.local_addr().unwrap().port());
    assert_eq!(news.recv().unwrap(), format!("pin 3 {ports:#x}"));
    Message::Go.write(&mut down).unwrap();
    let mut came = Vec::new();
    down.read_to_end(&mut came).unwrap();
    assert_eq!(came.len(), 100_000);
    drop(down);
    assert_eq!(news.recv().unwrap(), format!("unpin {ports:#x}"));

    let mut up = TcpStream::connect(address).unwrap();
    said(&mut up, &join(token, Purpose::Up, None, 100_000));
    Message::Go.write(&mut up).unwrap();
    io::Write::write_all(&mut up, &[0; 70_000]).unwrap();
    up.shutdown(Shutdown::Write).unwrap();
    let Message::Counted { bytes } = Message::read(&mut up).unwrap() else { panic!("no counts") };
    assert_eq!(bytes.iter().sum::<u32>(), 70_000);

    let mut echo = TcpStream::connect(address).unwrap();
    said(&mut echo, &join(token, Purpose::Echo, None, 1000));
    Message::Go.write(&mut echo).unwrap();
    for stamp in 0..3 {
        assert_eq!(said(&mut echo, &Message::Echo { stamp }), Message::Echo { stamp });
    }
}

#[test]
fn what_is_not_allowed_is_refused_with_a_reason() {
    let (address, _news) = service();
    let connect = || TcpStream::connect(address).unwrap();
    let unknown = join([9; 16], Purpose::Down, None, 1);
    assert!(is_refused(&said(&mut connect(), &unknown), Refusal::UnknownToken));
    let (holding, token) = open(address);
    let again = said(&mut connect(), &Message::Open { seconds: 1 });
    assert!(is_refused(&again, Refusal::Busy), "{again:?}");
    let nowhere = join(token, Purpose::Down, Some(4), 1);
    assert!(is_refused(&said(&mut connect(), &nowhere), Refusal::NoSuchPath));
    let mut long = join(token, Purpose::Down, None, 1);
    if let Message::Join { millis, .. } = &mut long {
        *millis = u32::MAX;
    }
    assert!(is_refused(&said(&mut connect(), &long), Refusal::TooMuch));
    let mut newer = Message::Open { seconds: 1 }.to_bytes();
    newer[7] = 2;
    let mut stream = connect();
    io::Write::write_all(&mut stream, &newer).unwrap();
    assert!(is_refused(&Message::read(&mut stream).unwrap(), Refusal::Version));
    drop(holding);
    // The measurement ends as soon as the end of its connection is seen.
    let open_again = || said(&mut connect(), &Message::Open { seconds: 1 });
    let mut answers = std::iter::repeat_with(open_again).take(2000);
    let welcome = answers.any(|answer| {
        thread::sleep(Duration::from_millis(5));
        matches!(answer, Message::Welcome { .. })
    });
    assert!(welcome);
}

#[test]
fn whoever_talks_nonsense_is_cut_off() {
    let (address, _news) = service();
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 1, 6], &[0xff; 40], &[0, 0]] {
        let mut stream = TcpStream::connect(address).unwrap();
        io::Write::write_all(&mut stream, nonsense).unwrap();
        // A reset is as good as an orderly end, and may have come already.
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{nonsense:?}: {answer:?}");
    }
}

#[test]
fn regression_a_client_that_trickles_is_cut_off_in_time() {
    let (address, _news) = service();
    let mut stream = TcpStream::connect(address).unwrap();
    // The longest message there is, a byte now and then.
    let bytes = [&[0x10, 0][..], &[0; 4096]].concat();
    let start = Instant::now();
    for byte in &bytes {
        if io::Write::write_all(&mut stream, &[*byte]).is_err() {
            break;
        }
        thread::sleep(FIRST_MESSAGE_TIME / 20);
        assert!(start.elapsed() < 10 * FIRST_MESSAGE_TIME, "a byte now and then keeps it open");
    }
}
