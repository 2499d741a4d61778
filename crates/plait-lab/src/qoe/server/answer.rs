//! Which answer an address gets.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use http_body_util::{BodyExt as _, Either, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::fs::File;
use tokio::io::AsyncSeekExt as _;

use super::body::{Content, FileBody, text};
use super::range::{self, Asked};
use super::store::{NotKept, Store};
use super::{cmcd, place};
use crate::qoe::catalogue::{Catalogue, Clip, FILE};
use crate::qoe::record::BYTES_MAX;
use crate::qoe::{app, youtube};

/// The page asks nobody but its own server.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; \
                      worker-src 'self' blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

/// What a server serves.
#[derive(Debug)]
pub(crate) struct Site {
    /// The folder of clips.
    pub(crate) clips: PathBuf,
    pub(crate) runs: Mutex<Store>,
    pub(crate) log: Mutex<cmcd::Log>,
    /// For the Data API; without it the page offers no YouTube.
    pub(crate) youtube_key: Option<youtube::Key>,
    /// How long a posted body may take.
    pub(crate) post_limit: Duration,
}

type Answer = Response<Content>;

#[derive(Serialize)]
struct Offered {
    clips: Vec<Clip>,
    providers: Vec<&'static str>,
}

impl Site {
    /// Answers a request, whatever it is.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path().to_owned();
        let mut answer = match path.as_str() {
            "/runs" if *request.method() == Method::POST => self.keep(request).await,
            _ if !is_read => refusal(StatusCode::METHOD_NOT_ALLOWED, "this cannot be posted to"),
            _ => self.read(&path, &request).await,
        };
        let headers = answer.headers_mut();
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, self.policy()),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            // Each run must fetch its clip again, and over the network.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ] {
            headers.insert(name, value);
        }
        answer
    }

    fn policy(&self) -> HeaderValue {
        let policy = if self.youtube_key.is_some() { youtube::POLICY } else { POLICY };
        HeaderValue::from_static(policy)
    }

    async fn read<B>(&self, path: &str, request: &Request<B>) -> Answer {
        match path.strip_prefix('/').unwrap_or(path) {
            "" => page("index.html"),
            FILE => self.catalogue(),
            "runs" => {
                let store = self.runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                json(&store.entries())
            }
            "youtube-key" => match &self.youtube_key {
                Some(key) => json(&key.text()),
                None => missing(),
            },
            path => match (path.strip_prefix("media/"), path.strip_prefix("runs/")) {
                (Some(file), _) => self.media(file, request).await,
                (_, Some(name)) => self.run(name),
                _ => page(path),
            },
        }
    }

    fn catalogue(&self) -> Answer {
        let youtube = self.youtube_key.is_some().then_some("youtube");
        let providers = ["local"].into_iter().chain(youtube).collect();
        match Catalogue::read(&self.clips) {
            Ok(Catalogue { clips }) => json(&Offered { clips, providers }),
            Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        }
    }

    fn run(&self, name: &str) -> Answer {
        let Some(name) = name.strip_suffix(".json") else { return missing() };
        let store = self.runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match store.read(name) {
            Ok(Some(run)) => of_type("application/json", run),
            Ok(None) => missing(),
            Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn media<B>(&self, path: &str, request: &Request<B>) -> Answer {
        if let Some(data) = request.uri().query().and_then(cmcd::of_query) {
            let mut log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // A full disk must not stop the clip.
            let _not_logged = log.add(path, &data);
        }
        let Some(file) = place::below(&self.clips, path) else { return missing() };
        if !place::stays(&self.clips, &file).unwrap_or(false) {
            return missing();
        }
        let Ok(opened) = File::open(&file).await else { return missing() };
        let length = match opened.metadata().await {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => return missing(),
        };
        let asked = request.headers().get(header::RANGE).and_then(|value| value.to_str().ok());
        let asked = asked.map_or(Asked::Whole, |value| range::parse(value, length));
        part_of(opened, length, asked, place::media_type(path)).await
    }

    async fn keep<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // A page of another site may send forms and texts here, but not this without being asked.
        if !is_json(request.headers()) {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a run is application/json");
        }
        let too_large = || {
            let told = format!("a run has at most {BYTES_MAX} bytes");
            closing(refusal(StatusCode::PAYLOAD_TOO_LARGE, &told))
        };
        if request.body().size_hint().lower() > BYTES_MAX as u64 {
            return too_large();
        }
        let whole = Limited::new(request.into_body(), BYTES_MAX);
        let body = match tokio::time::timeout(self.post_limit, std::pin::pin!(whole).collect())
            .await
        {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let told = format!("a run has at most {BYTES_MAX} bytes");
                return closing(refusal(StatusCode::PAYLOAD_TOO_LARGE, &told));
            }
            Ok(Err(error)) => return refusal(StatusCode::BAD_REQUEST, &error.to_string()),
            Err(_) => {
                return closing(refusal(StatusCode::REQUEST_TIMEOUT, "the run came too slowly"));
            }
        };
        let mut store = self.runs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match store.keep(&body) {
            Ok(name) => {
                let mut answer = json(&serde_json::json!({ "id": name }));
                *answer.status_mut() = StatusCode::CREATED;
                answer
            }
            Err(error) => {
                let status = match &error {
                    NotKept::NoRecord(_) => StatusCode::UNPROCESSABLE_ENTITY,
                    NotKept::Known(_) => StatusCode::CONFLICT,
                    NotKept::Full | NotKept::Folder(_) => StatusCode::INSUFFICIENT_STORAGE,
                };
                refusal(status, &error.to_string())
            }
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

async fn part_of(mut file: File, length: u64, asked: Asked, kind: &'static str) -> Answer {
    let (status, part) = match asked {
        Asked::Whole => (StatusCode::OK, 0..length),
        Asked::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Asked::Beyond => {
            let mut answer = refusal(StatusCode::RANGE_NOT_SATISFIABLE, "beyond the file's end");
            insert(&mut answer, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return answer;
        }
    };
    if part.start > 0 && file.seek(SeekFrom::Start(part.start)).await.is_err() {
        return missing();
    }
    let bytes = part.end - part.start;
    let mut answer = Response::new(Either::Right(FileBody::new(file, bytes)));
    *answer.status_mut() = status;
    insert(&mut answer, header::CONTENT_TYPE, kind);
    insert(&mut answer, header::ACCEPT_RANGES, "bytes");
    insert(&mut answer, header::CONTENT_LENGTH, &bytes.to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let told = format!("bytes {}-{}/{length}", part.start, part.end - 1);
        insert(&mut answer, header::CONTENT_RANGE, &told);
    }
    answer
}

fn insert(answer: &mut Answer, name: header::HeaderName, value: &str) {
    // All that is given here is ASCII without line ends.
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

fn page(name: &str) -> Answer {
    app::file(name).map_or_else(missing, |bytes| of_type(place::media_type(name), bytes))
}

fn of_type(kind: &'static str, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(text(bytes));
    insert(&mut answer, header::CONTENT_TYPE, kind);
    answer
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => of_type("application/json", text),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn missing() -> Answer {
    refusal(StatusCode::NOT_FOUND, "there is nothing here")
}

/// An answer in words. The connection stays.
fn refusal(status: StatusCode, words: &str) -> Answer {
    let mut answer = of_type("text/plain; charset=utf-8", format!("{words}\n"));
    *answer.status_mut() = status;
    answer
}

/// The connection ends with it: what is left of the request is not read.
fn closing(mut answer: Answer) -> Answer {
    insert(&mut answer, header::CONNECTION, "close");
    answer
}
