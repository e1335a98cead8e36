//! A server that speaks a minimal part of `MongoDB`'s protocol: `hello`, `find` and `getMore`.

use mongodb::bson::{Bson, Document, doc};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Documents, by the names of their collections. A missing collection may not be read.
pub(crate) type StoredCollections = BTreeMap<&'static str, Vec<Document>>;

/// The number of documents in a batch.
const BATCH: usize = 101;

/// The server. It stops when it is dropped.
pub(crate) struct Double {
    address: SocketAddr,
    stored: Arc<Mutex<StoredCollections>>,
    asked: Arc<Mutex<Vec<Document>>>,
    silent_to: Arc<Mutex<Option<&'static str>>>,
    _tasks: JoinSet<()>,
}

impl Double {
    pub(crate) async fn start(stored: StoredCollections) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (stored, asked) = (Arc::new(Mutex::new(stored)), Arc::new(Mutex::default()));
        let mut tasks = JoinSet::new();
        let (kept, noted) = (Arc::clone(&stored), Arc::clone(&asked));
        let silent_to = Arc::new(Mutex::new(None));
        let silent = Arc::clone(&silent_to);
        tasks.spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, noted) = (Arc::clone(&kept), Arc::clone(&noted));
                sessions.spawn(serve(stream, kept, noted, Arc::clone(&silent)));
            }
        });
        Self {
            address,
            stored,
            asked,
            silent_to,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.address)
    }

    /// Stores other documents in a collection.
    pub(crate) fn store(&self, collection: &'static str, documents: Vec<Document>) {
        self.stored.lock().insert(collection, documents);
    }

    /// Leaves a command unanswered from now on.
    pub(crate) fn ignore_command(&self, command: &'static str) {
        *self.silent_to.lock() = Some(command);
    }

    /// Returns the commands so far.
    pub(crate) fn asked(&self) -> Vec<Document> {
        self.asked.lock().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    stored: Arc<Mutex<StoredCollections>>,
    asked: Arc<Mutex<Vec<Document>>>,
    silent_to: Arc<Mutex<Option<&'static str>>>,
) {
    loop {
        let Ok(length) = stream.read_i32_le().await else {
            return;
        };
        let mut rest = vec![0; usize::try_from(length - 4).expect("a length")];
        stream.read_exact(&mut rest).await.expect("a message");
        let request = i32::from_le_bytes(rest[..4].try_into().expect("four bytes"));
        let code = i32::from_le_bytes(rest[8..12].try_into().expect("four bytes"));
        let body = &rest[12..];
        let reply = match code {
            // The first message of a driver may have the old format.
            2004 => {
                let name = body[4..]
                    .iter()
                    .position(|byte| *byte == 0)
                    .expect("a name");
                let command = document(&body[4 + name + 1 + 8..]);
                old_reply(request, &answer(&command, &stored.lock()))
            }
            2013 => {
                let command = document(&body[5..]);
                let reply = answer(&command, &stored.lock());
                let name = command.keys().next().map(String::as_str);
                let is_silent = name.is_some() && name == *silent_to.lock();
                asked.lock().push(command);
                if is_silent {
                    continue;
                }
                reply_to(request, &reply)
            }
            code => panic!("a message of kind {code}"),
        };
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

fn document(bytes: &[u8]) -> Document {
    Document::from_reader(bytes).expect("a document")
}

fn bytes(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    document.to_writer(&mut bytes).expect("it is written");
    bytes
}

fn reply_to(request: i32, document: &Document) -> Vec<u8> {
    // No flags, and one section that is a document.
    let body = [&[0; 5][..], &bytes(document)].concat();
    message(request, 2013, &body)
}

fn old_reply(request: i32, document: &Document) -> Vec<u8> {
    let mut body = vec![0; 16];
    body.extend(1_i32.to_le_bytes());
    body.extend(bytes(document));
    message(request, 1, &body)
}

fn message(request: i32, code: i32, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(16 + body.len()).expect("it is short");
    let head = [length, 1, request, code].map(i32::to_le_bytes).concat();
    [&head, body].concat()
}

fn answer(command: &Document, stored: &StoredCollections) -> Document {
    let (name, value) = command.iter().next().expect("a command");
    match name.as_str() {
        "hello" | "isMaster" | "ismaster" => doc! {
            "ok": 1, "helloOk": true, "ismaster": true, "isWritablePrimary": true,
            "maxBsonObjectSize": 16_777_216, "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000, "minWireVersion": 0, "maxWireVersion": 21, "readOnly": false,
        },
        "find" => {
            let collection = value.as_str().expect("a name");
            batch(collection, 0, "firstBatch", stored)
        }
        "getMore" => {
            let from = usize::try_from(value.as_i64().expect("a cursor")).expect("a place");
            let collection = command.get_str("collection").expect("a name");
            batch(collection, from, "nextBatch", stored)
        }
        _ => doc! { "ok": 1 },
    }
}

/// Returns a part of a collection, and a cursor that is the index of the next part.
fn batch(collection: &str, from: usize, name: &str, stored: &StoredCollections) -> Document {
    let Some(documents) = stored.get(collection) else {
        return doc! { "ok": 0, "code": 13, "codeName": "Unauthorized", "errmsg": "not authorized" };
    };
    let part: Vec<Bson> = documents
        .iter()
        .skip(from)
        .take(BATCH)
        .cloned()
        .map(Bson::Document)
        .collect();
    let next = from + part.len();
    let cursor = if next < documents.len() { next } else { 0 };
    let cursor = i64::try_from(cursor).expect("a place");
    doc! { "ok": 1, "cursor": { "id": cursor, "ns": format!("db.{collection}"), name: part } }
}
