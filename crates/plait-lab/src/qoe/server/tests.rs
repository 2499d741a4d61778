//! A server on loopback, and clients that send what they like.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::qoe::record::tests::sample;

const LIMIT: Duration = Duration::from_secs(20);

/// A server over a folder of its own.
struct Fixture {
    folder: PathBuf,
    server: Server,
}

impl Fixture {
    fn new(name: &str, limits: Limits) -> Self {
        let folder =
            std::env::temp_dir().join(format!("plait-qoe-server-{}-{name}", std::process::id()));
        let clips = folder.join("clips");
        fs::create_dir_all(clips.join("a")).unwrap();
        fs::write(clips.join("a/seg.m4s"), (0..=255).collect::<Vec<u8>>()).unwrap();
        fs::write(clips.join("a/large.m4s"), vec![7; 8 << 20]).unwrap();
        fs::write(folder.join("secret.txt"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.join("secret.txt"), clips.join("a/link.txt")).unwrap();
        fs::write(clips.join("catalogue.json"), r#"{"clips":[]}"#).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let runs = folder.join("runs");
        let folders = Folders { clips: &clips, runs: &runs, youtube_key: None };
        Self { server: Server::start(listener, folders, limits).unwrap(), folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends a request as it stands, and reads until the server closes.
    fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may refuse before it has read everything.
        let _refused = stream.write_all(request);
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        self.ask(
            format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n")
                .as_bytes(),
        )
    }

    fn post(&self, body: &str) -> String {
        let length = body.len();
        self.ask(
            format!(
                "POST /runs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _in_use = fs::remove_dir_all(&self.folder);
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[test]
fn files_come_whole_and_in_parts() {
    let fixture = Fixture::new("files", Limits::default());
    let whole = fixture.get("/media/a/seg.m4s", "");
    assert_eq!(status(&whole), 200, "{whole}");
    for header in ["content-length: 256", "video/mp4", "no-store", "accept-ranges: bytes"] {
        assert!(whole.contains(header), "{header}: {whole}");
    }
    let part = fixture.get("/media/a/seg.m4s", "range: bytes=48-52\r\n");
    assert_eq!(status(&part), 206);
    assert!(part.contains("content-range: bytes 48-52/256"), "{part}");
    assert!(part.ends_with("\r\n\r\n01234"), "{part}");
    let beyond = fixture.get("/media/a/seg.m4s", "range: bytes=256-\r\n");
    assert_eq!(status(&beyond), 416);
    assert!(beyond.contains("content-range: bytes */256"), "{beyond}");
    let head =
        fixture.ask(b"HEAD /media/a/seg.m4s HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(head.contains("content-length: 256") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn nothing_outside_of_the_catalogue_is_served() {
    let fixture = Fixture::new("outside", Limits::default());
    for path in [
        "/media/../secret.txt",
        "/media/a/../../secret.txt",
        "/media/%2e%2e/secret.txt",
        "/media/a/link.txt",
        "/media//etc/passwd",
        "/media/",
        "/media/a",
        "/runs/../secret.txt",
        "/runs/..%2fsecret.json",
        "/runs/none.json",
        "/youtube-key",
    ] {
        let answer = fixture.get(path, "");
        assert_eq!(status(&answer), 404, "{path}: {answer}");
        assert!(!answer.contains("secret"), "{path}: {answer}");
    }
    assert_eq!(
        status(&fixture.ask(
            b"DELETE /runs HTTP/1.1\r\nhost: a\r\n\
        connection: close\r\n\r\n"
        )),
        405
    );
}

#[test]
fn runs_are_kept_once_and_listed() {
    let fixture = Fixture::new("runs", Limits::default());
    let record = sample("run-1").to_string();
    assert_eq!(status(&fixture.post(&record)), 201);
    assert_eq!(status(&fixture.post(&record)), 409);
    let mut wrong = sample("run-2");
    wrong["figures"]["mos"] = 5.into();
    let answer = fixture.post(&wrong.to_string());
    assert_eq!(status(&answer), 422);
    assert!(answer.contains("Eq. 1"), "{answer}");
    let list = fixture.get("/runs", "");
    assert!(list.contains(r#""id":"run-1""#) && !list.contains("run-2"), "{list}");
    assert!(fixture.get("/runs/run-1.json", "").ends_with(&record));
    let form = "POST /runs HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(status(&fixture.ask(form.as_bytes())), 415);
    // Another server over the same folder knows it, too.
    let again = Store::open(&fixture.folder.join("runs")).unwrap();
    assert_eq!(again.entries().len(), 1);
}

#[test]
fn what_a_player_says_is_logged() {
    let fixture = Fixture::new("cmcd", Limits::default());
    let answer = fixture.get("/media/a/seg.m4s?CMCD=br%3D15879%2Csid%3D%22run-1%22", "");
    assert_eq!(status(&answer), 200);
    let log = fs::read_to_string(fixture.folder.join("runs").join(LOG)).unwrap();
    assert!(log.contains(r#""path":"a/seg.m4s","cmcd":{"br":"15879","sid":"run-1"}}"#), "{log}");
}

#[test]
fn large_posts_are_refused() {
    let fixture = Fixture::new("large", Limits::default());
    let told = "POST /runs HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    let declared = format!("{told}content-length: 99999999\r\n\r\n");
    assert_eq!(status(&fixture.ask(declared.as_bytes())), 413);
    // Without a length in the head, and more than a record has.
    let mut chunked = format!("{told}transfer-encoding: chunked\r\n\r\n").into_bytes();
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    for _ in 0..80 {
        chunked.extend_from_slice(&chunk);
    }
    let answer = fixture.ask(&chunked);
    assert!(answer.is_empty() || status(&answer) == 413, "{answer}");
}

#[test]
fn slow_clients_are_left() {
    let short = Duration::from_millis(300);
    let limits = Limits { head: short, post: short, still: short * 4, ..Limits::default() };
    let fixture = Fixture::new("slow", limits);
    let started = Instant::now();
    // Half a head; a head without its body; a large file that is never read.
    let mut half = fixture.connect();
    half.write_all(b"GET / HTTP/1.1\r\nho").unwrap();
    let mut post = fixture.connect();
    post.write_all(
        b"POST /runs HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
          content-length: 9\r\n\r\n{",
    )
    .unwrap();
    let mut deaf = fixture.connect();
    deaf.write_all(b"GET /media/a/large.m4s HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _reset = half.read_to_end(&mut answer);
    answer.clear();
    let _reset = post.read_to_end(&mut answer);
    assert_eq!(status(&String::from_utf8_lossy(&answer)), 408);
    std::thread::sleep(limits.still * 2);
    answer.clear();
    let _reset = deaf.read_to_end(&mut answer);
    assert!(answer.len() < 8 << 20, "it came whole, {} bytes", answer.len());
    assert!(started.elapsed() < LIMIT);
}

#[test]
fn more_clients_than_there_is_room_for_wait() {
    let short = Duration::from_millis(500);
    let limits = Limits { connections: 2, head: short, ..Limits::default() };
    let fixture = Fixture::new("crowd", limits);
    let _idle = [fixture.connect(), fixture.connect()];
    // The third has its turn once an idle one is left.
    assert_eq!(status(&fixture.get("/catalogue.json", "")), 200);
}
